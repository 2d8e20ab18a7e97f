/* exchange.c -- one rank of an MPI job that tests the transport.
 *
 *     exchange star|mesh|long|full|kill|stop SEED
 *
 * Every rank sends COUNT packets of very different sizes to each of its peers.
 * It checks that the packets that it gets are whole, unchanged and in order.
 *
 * - star: between rank 0 and all others.
 * - mesh: between all.
 * - long: the same, but bodies longer than HALF are not wanted.
 * - full: short packets only, and the other ranks do not listen for a while.
 *   Their channels must be full after a bounded number.
 * - kill: rank 0 kills another rank during the exchange, in a star if SEED is
 *   odd, else in a mesh.
 * - stop: the same, but stops it, and lets it continue once it is lost.
 *
 * Prints a line "rank R: ok, L lost" and exits with 0, or reports the fault. */
#include <kofn/mpi.h>

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define COUNT 44
#define MOST 64 /* ranks */
#define LONGEST ((size_t)8 << 20)
#define HALF 65536

/* Sizes around every border: none, short, separate from the head, and sizes
 * that networks treat differently. */
static const size_t sizes[] = {0,    1,    8,     3703,  3704,    3705,   3712,
                               4096, 8192, 65536, 65537, 1 << 20, 8 << 20};
#define SIZES (sizeof sizes / sizeof *sizes)

typedef struct head {
    uint32_t from, to, number, urgent, pid;
    uint64_t bytes;
} head;

static kofn_transport *t;
static kofn_mpi_info info = KOFN_MPI_INFO_INIT;
static bool mesh, full, too_long;
static uint32_t seed;
static unsigned char
    *body[MOST]; /* the body that is being sent to each rank; borrowed */
static bool busy[MOST];
static uint32_t sent[MOST], got[MOST][2], pid[MOST];
static bool came[MOST], went[MOST];
static unsigned lost, victim;
static size_t accepted, finished; /* calls of done */

static void wrong(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fprintf(stderr, "rank %u: ", info.rank);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
    va_end(ap);
    _exit(1);
}

static double now(void)
{
    struct timespec s;

    clock_gettime(CLOCK_MONOTONIC, &s);
    return (double)s.tv_sec + 1e-9 * (double)s.tv_nsec;
}

/* ---- packets that are sent ----------------------------------------------- */

static uint32_t mix(uint32_t a, uint32_t b)
{
    uint64_t x = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);

    x ^= x >> 29;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    return (uint32_t)(x >> 32);
}

static size_t size_of(uint32_t from, uint32_t to, uint32_t number)
{
    size_t i = mix(seed, mix(from * MOST + to, number)) % SIZES;

    if (full)
        return sizes[i % 8];
    /* A few of the longest bodies suffice. */
    return number % 4 ? sizes[i % (SIZES - 2)] : sizes[i];
}

static bool is_urgent(uint32_t number)
{
    return number % 5 == 3;
}

static void fill(unsigned char *p, size_t bytes, uint32_t key)
{
    for (size_t i = 0; i < bytes; i++)
        p[i] = (unsigned char)(key + i * 31 + (i >> 8));
}

static uint32_t key_of(const head *h)
{
    return mix(h->from * MOST + h->to, h->number);
}

static void done(void *ud)
{
    *(bool *)ud = false;
    finished++;
}

/* Returns the rank of a peer. peer_of() is the inverse. */
static unsigned rank_of(kofn_peer p)
{
    return mesh ? p : info.rank ? 0 : p + 1;
}

static kofn_peer peer_of(unsigned rank)
{
    return mesh ? rank : info.rank ? 0 : rank - 1;
}

static bool is_peer(unsigned rank)
{
    return rank != info.rank && (mesh || !rank || !info.rank);
}

/* Sends the next packet to `to`, if it is accepted. */
static bool send_next(unsigned to)
{
    head h = {info.rank,          to,
              sent[to],           is_urgent(sent[to]),
              (uint32_t)getpid(), size_of(info.rank, to, sent[to])};
    kofn_status st;

    if (busy[to])
        return false;
    fill(body[to], h.bytes, key_of(&h));
    busy[to] = true;
    st = t->send(t, peer_of(to), &h, sizeof h,
                 &(kofn_lent){body[to], h.bytes, done, &busy[to]}, h.urgent);
    if (st == KOFN_AGAIN) {
        busy[to] = false;
        return false;
    }
    accepted++; /* done is called whatever the answer */
    if (st == KOFN_TRANSPORT && busy[to])
        wrong("send failed and kept the body");
    if (st && st != KOFN_TRANSPORT)
        wrong("send: %s", kofn_errmsg());
    if (st && !victim)
        wrong("send: %s", kofn_errmsg());
    sent[to]++;
    return st == KOFN_OK;
}

/* ---- packets that come --------------------------------------------------- */

/* Returns the next number from `from` that is due in one of its channels. */
static uint32_t next_number(uint32_t from, bool urgent)
{
    uint32_t n = got[from][urgent];

    while (n < COUNT && (is_urgent(n) != urgent ||
                         (too_long && size_of(from, info.rank, n) > HALF)))
        n++;
    return n;
}

/* True if a body may have wrong bytes. Open MPI fetches long bodies from the
 * memory of the sender's process. That process may be killed, or may have lost
 * a stopped rank. Open MPI then leaves the former bytes, and reports success.
 * Checksums of bodies detect this. */
static bool may_be_garbage(unsigned from)
{
    return victim && (from == victim || info.rank == victim);
}

static void check_packet(const kofn_packet *p)
{
    const unsigned char *b = p->body;
    unsigned from = rank_of(p->peer);
    uint32_t expected, key;
    head h;

    if (p->head_bytes != sizeof h)
        wrong("a head of %zu bytes", p->head_bytes);
    memcpy(&h, p->head, sizeof h);
    if (h.from != from || h.to != info.rank || h.urgent > 1)
        wrong("a packet from %u to %u came from %u", h.from, h.to, from);
    expected = next_number(from, h.urgent);
    if (h.number != expected)
        wrong("number %u from %u where %u was due", h.number, from, expected);
    got[from][h.urgent] = h.number + 1;
    pid[from] = h.pid;
    if (p->body_bytes != size_of(from, info.rank, h.number) ||
        p->body_bytes != h.bytes || !b != !p->body_bytes)
        wrong("%zu bytes instead of %zu", p->body_bytes, (size_t)h.bytes);
    key = key_of(&h);
    for (size_t i = 0; i < p->body_bytes && !may_be_garbage(from); i++)
        if (b[i] != (unsigned char)(key + i * 31 + (i >> 8)))
            wrong("byte %zu of %zu from %u is not what was sent", i,
                  p->body_bytes, from);
    t->release(t, p->own);
}

static bool all_from(unsigned r)
{
    return next_number(r, false) >= COUNT && next_number(r, true) >= COUNT;
}

static void take(const kofn_packet *p)
{
    unsigned r = rank_of(p->peer);

    if (r >= info.ranks || !is_peer(r))
        wrong("something of a peer %u", p->peer);
    if (went[r])
        wrong("something after the going of rank %u", r);
    switch (p->what) {
    case KOFN_CAME:
        if (came[r])
            wrong("rank %u came twice", r);
        came[r] = true;
        break;
    case KOFN_WENT:
        went[r] = true;
        if (!all_from(r)) {
            lost++;
            if (r != victim && info.rank != victim)
                wrong("rank %u went in the midst of it", r);
        }
        break;
    default:
        if (!came[r])
            wrong("a packet before rank %u came", r);
        check_packet(p);
    }
}

/* ---- the exchange -------------------------------------------------------- */

static bool over(void)
{
    for (unsigned r = 0; r < info.ranks; r++)
        if (is_peer(r) && !went[r] &&
            (!all_from(r) || sent[r] < COUNT || busy[r]))
            return false;
    return true;
}

static void harm(const char *mode)
{
    static unsigned state;
    static uint32_t when;
    bool stops = !strcmp(mode, "stop");

    if (info.rank || !victim)
        return;
    when = when ? when : 1 + mix(seed, 77) % (COUNT - 8);
    if (state == 0 && pid[victim] && got[victim][0] >= when) {
        kill((pid_t)pid[victim], stops ? SIGSTOP : SIGKILL);
        state = 1;
    } else if (state == 1 && stops && went[victim]) {
        kill((pid_t)pid[victim], SIGCONT);
        state = 2;
    }
}

static void exchange(const char *mode)
{
    double began = now();
    kofn_status st;
    kofn_packet p;

    while (!over()) {
        bool any = false;

        harm(mode);
        for (unsigned r = 0; r < info.ranks; r++)
            if (is_peer(r) && !went[r] && sent[r] < COUNT)
                any = send_next(r) || any;
        st = t->wait(t, any ? 0 : KOFN_SECOND / 100, &p);
        if (st == KOFN_OK)
            take(&p);
        else if (st == KOFN_TRANSPORT)
            break;
        else if (st != KOFN_AGAIN)
            wrong("wait: %s", kofn_errmsg());
        if (now() - began > 40)
            wrong("still not over after 40 s");
    }
    for (unsigned r = 0; r < info.ranks; r++)
        if (is_peer(r) && !all_from(r) && !(went[r] && victim))
            wrong("not all has come from rank %u", r);
    while (victim && is_peer(victim) && !went[victim]) {
        st = t->wait(t, KOFN_SECOND / 10, &p);
        if (st == KOFN_OK)
            take(&p);
        harm(mode);
        if (now() - began > 40)
            wrong("rank %u is dead, which is not reported", victim);
    }
    harm(mode);
}

/* Checks the number of dropped bodies, which are too long. The last may still
 * be on their way. */
static void check_dropped(void)
{
    uint64_t expected = 0;
    kofn_packet p;

    for (uint32_t n = 0; n < COUNT; n++)
        for (unsigned r = 0; r < info.ranks; r++)
            expected +=
                too_long && is_peer(r) && size_of(r, info.rank, n) > HALF;
    for (int i = 0; i < 500 && t->dropped < expected; i++)
        if (t->wait(t, KOFN_SECOND / 100, &p) == KOFN_OK)
            take(&p);
    if (t->dropped != expected)
        wrong("%llu packets were dropped and not %llu",
              (unsigned long long)t->dropped, (unsigned long long)expected);
}

/* Fills the channel to a rank that does not listen. It may take only a little.
 */
static void fill_up(void)
{
    struct timespec nap = {0, 300000000};
    unsigned r = 1;

    if (info.rank) {
        nanosleep(&nap, NULL);
        return;
    }
    while (sent[r] < COUNT && send_next(r))
        while (busy[r]) {
            kofn_packet p;

            if (t->wait(t, KOFN_SECOND / 100, &p) == KOFN_OK)
                take(&p);
            if (got[r][0])
                return; /* it listens by now */
        }
    if (sent[r] >= COUNT)
        wrong("%u packets went to a rank that does not listen", sent[r]);
}

int main(int argc, char **argv)
{
    kofn_mpi_options opt = KOFN_MPI_OPTIONS_INIT;
    const char *mode = argc > 2 ? argv[1] : "";
    bool harmful;

    if (argc != 3)
        wrong("use: exchange star|mesh|long|full|kill|stop SEED");
    seed = (uint32_t)atoi(argv[2]);
    full = !strcmp(mode, "full");
    too_long = !strcmp(mode, "long");
    harmful = !strcmp(mode, "kill") || !strcmp(mode, "stop");
    opt.mesh = mesh = strcmp(mode, "star") && !(harmful && seed % 2);
    opt.silence = harmful ? KOFN_SECOND : 10 * KOFN_SECOND;
    if (kofn_mpi_open(&t, &opt, &(kofn_mpi_info){0}) != KOFN_INVAL)
        wrong("an info without its size was accepted");
    if (kofn_mpi_open(&t, &opt, &info))
        wrong("open: %s", kofn_errmsg());
    if (info.ranks > MOST)
        wrong("%u ranks are too many", info.ranks);
    if (too_long)
        t->body_max = HALF;
    if (harmful)
        victim = 1 + mix(seed, 5) % (info.ranks - 1);
    if (!info.rank)
        printf("%s\n", info.survival);
    for (unsigned r = 0; r < info.ranks; r++)
        body[r] = malloc(LONGEST);
    if (full)
        fill_up();
    exchange(mode);
    check_dropped();
    t->close(t, 2 * KOFN_SECOND);
    if (finished != accepted)
        wrong("%zu bodies were borrowed and %zu given back", accepted,
              finished);
    for (unsigned r = 0; r < info.ranks; r++)
        free(body[r]);
    printf("rank %u: ok, %u lost\n", info.rank, lost);
    return kofn_mpi_end(0);
}
