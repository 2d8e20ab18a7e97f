load helpers

# Coordinators and workers started here end with the test.
teardown() {
    end_jobs
}

# A product without end on $1 workers at $at, with further options. Its figures are at $url.
product() {
    local n=$1
    shift
    at=ipc://$PWD/socket
    kofn gen matrix 600 300 -o A.npy
    kofn gen vector 300 -o x.npy
    timeout 600 "$KOFN" matvec A.npy x.npy -o y.npy -p "$at" -n "$n" -r 1000000 \
        --metrics-listen 127.0.0.1:0 "$@" >/dev/null 2>head 3>&- &
    until_it grep -q '^metrics at ' head
    url=$(grep -oE 'http://[^ ]+' head)
}

# ask URL [RAW]: the answer goes to the file m.txt, its head to the file h.txt. RAW is sent instead
# of a request for the URL.
ask() {
    $PYTHON - "$@" <<'EOF'
import re, socket, sys
host, port, path = re.fullmatch(r"http://\[?(.*?)\]?:([0-9]+)(/.*)", sys.argv[1]).groups()
raw = sys.argv[2].encode().decode("unicode_escape") if len(sys.argv) > 2 else \
    f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"
with socket.create_connection((host, int(port)), 30) as s:
    s.sendall(raw.encode())
    got = b""
    while piece := s.recv(65536):
        got += piece
head, body = got.split(b"\r\n\r\n", 1)
length = int(re.search(rb"Content-Length: ([0-9]+)", head)[1])
assert raw.startswith("HEAD") or length == len(body), (length, len(body))
open("h.txt", "wb").write(head)
open("m.txt", "wb").write(body)
EOF
}

# figures URL EXPRESSION: it holds of the figures m that are there.
figures() {
    ask "$1" 2>/dev/null && $PYTHON "$KOFN_SOURCE/tests/cli/prometheus.py" m.txt "$2" 2>figures.txt
}

# show: prints what was found, for a failure.
show() {
    cat figures.txt m.txt
    return 1
}

# bats test_tags=asan
@test "metrics: the coordinator and a worker answer Prometheus" {
    product 4 -s mds:k=2
    for name in 'an"na' bert bert; do
        timeout 600 "$KOFN" worker "$at" -q --once --name "$name" 2>/dev/null 3>&- &
    done
    timeout 600 "$KOFN" worker "$at" --once --name carl --metrics-listen '[::1]:0' 2>carl 3>&- &
    until_it figures "$url" "all(m.get(('kofn_worker_results_total', f'worker=\"{w}\"'), 0) > 20
        for w in ('an\\\\\"na', 'bert', 'carl'))"
    grep -q '^HTTP/1.1 200 OK' h.txt
    grep -q 'text/plain; version=0.0.4' h.txt
    # all bytes that were received are results of workers; those of the open round come later
    figures "$url" "(lambda w: len(w) == 3 and all(
        m['kofn_worker_compute_seconds_total', x] > 0 and
        m['kofn_worker_state', x + ',state=\"live\"'] == 1 for x in w) and
        m['kofn_workers', 'state=\"live\"'] == 4 and
        0 <= sum(m['kofn_worker_result_bytes_total', x] for x in w) -
        m['kofn_received_bytes_total', ''] <= 4 * 8 * 600 and
        m['kofn_received_bytes_total', ''] >= 8 * 600 * m['kofn_round_seconds_count', ''])(
        [k[1] for k in m if k[0] == 'kofn_worker_results_total'])" || show
    own=$(grep -oE 'http://[^ ]+' carl)
    until_it figures "$own" "(m['kofn_connected', ''] == 1 and m['kofn_served_results_total', ''] > 20 and
        m['kofn_served_bytes_total', ''] <= 8 * 300 * m['kofn_served_results_total', ''] and
        m['kofn_served_compute_seconds_total', ''] > 0 and m['kofn_served_failures_total', ''] == 0)" || show
}

# bats test_tags=asan
@test "metrics: other requests are refused, and a silent client blocks none for long" {
    product 1 -s uncoded
    ask "${url%/metrics}/other"
    grep -q '^HTTP/1.1 404' h.txt
    ask "$url" 'POST /metrics HTTP/1.1\r\n\r\n'
    grep -q '^HTTP/1.1 405' h.txt
    grep -q '^Allow: GET, HEAD' h.txt
    ask "$url" 'HEAD /metrics HTTP/1.1\r\n\r\n'
    grep -q '^HTTP/1.1 200' h.txt
    [ ! -s m.txt ]
    ask "$url" 'nothing\r\n\r\n'
    grep -q '^HTTP/1.1 400' h.txt
    ask "$url" "GET /metrics HTTP/1.1\r\nX: $(head -c 8192 /dev/zero | tr '\0' x)"
    grep -q '^HTTP/1.1 431' h.txt
    $PYTHON -c "
import socket, time, urllib.request
host, port = '$url'[7:].split('/')[0].split(':')
with socket.create_connection((host, int(port))) as silent:
    assert urllib.request.urlopen('$url', timeout=30).status == 200"
}

@test "metrics: an address that is busy, foreign or none is refused" {
    product 1 -s uncoded
    busy=${url#http://}
    busy=${busy%/metrics}
    run kofn matvec A.npy x.npy -o z.npy --metrics-listen "$busy"
    refused "$busy" "give another port"
    [ ! -e z.npy ]
    run kofn matvec A.npy x.npy -o z.npy --metrics-listen 0.0.0.0:0
    refused 0.0.0.0:0 --insecure
    kofn matvec A.npy x.npy -o z.npy --metrics-listen 0.0.0.0:0 --insecure -q
    for no in nowhere 127.0.0.1 127.0.0.1:x ::1:9100 localhost:9100 127.0.0.1:65536; do
        run kofn matvec A.npy x.npy -o z.npy --metrics-listen "$no"
        refused "$no" "127.0.0.1:9100"
    done
    run kofn power A.npy -o z.npy --masterless --metrics-listen 127.0.0.1:0
    refused masterless
}
