"""Certificates that another CA issued, at an address."""
import os
import subprocess
import sys

import numpy as np
import pytest

import kofn

X = np.arange(60.0).reshape(20, 3)


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder, name):
    openssl(folder, "req", "-x509", "-newkey", "ec", "-pkeyopt",
            "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
            f"/CN=the CA {name}", "-keyout", f"{name}.key", "-out", f"{name}.crt")


def issue(folder, ca, name):
    """The arguments with which a certificate of that CA is used."""
    openssl(folder, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out",
            f"{name}.csr")
    openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt",
            "-CAkey", f"{ca}.key", "-CAcreateserial", "-days", "2", "-out",
            f"{name}.crt")
    return {"tls_ca": folder / f"{ca}.crt", "tls_cert": folder / f"{name}.crt",
            "tls_key": folder / f"{name}.key"}


def worker(where, papers):
    options = [word for name, path in papers.items()
               for word in ("--" + name.replace("_", "-"), str(path))]
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    return subprocess.Popen([sys.executable, "-m", "kofn", "worker", "--once", where,
                             *options], env=env)


def test_workers_with_certificates_of_a_ca_come_in(tmp_path):
    authority(tmp_path, "ca")
    where = f"ipc://{tmp_path}/s"
    head = issue(tmp_path, "ca", "head")
    anna = issue(tmp_path, "ca", "anna")
    workers = []
    try:
        with kofn.Matrix(X, where, scheme="uncoded", workers=2, **head) as A:
            workers = [worker(name + where, anna) for name in ("", "head@")]
            assert np.allclose(A @ [1.0, 10, 100], X @ [1.0, 10, 100])
    finally:
        for w in workers:
            w.kill()
            w.wait()


def test_what_is_refused(tmp_path):
    authority(tmp_path, "ca")
    papers = issue(tmp_path, "ca", "head")
    where = f"ipc://{tmp_path}/s"
    for name in papers:
        two = {**papers, name: None}
        for call in (lambda: kofn.serve(where, **two),
                     lambda: kofn.power(np.eye(2), masterless=where, **two),
                     lambda: kofn.Matrix(X, where, **two) @ np.ones(3)):
            with pytest.raises(kofn.Invalid, match=f"{name}= is not given.*together"):
                call()
        lost = {**papers, name: tmp_path / "lost"}
        with pytest.raises(kofn.Error, match="lost: No such file.*give a file"):
            kofn.serve(where, **lost)
    with pytest.raises(kofn.Invalid, match="give one of them"):
        kofn.serve(where, keys=tmp_path, **papers)
    issue(tmp_path, "ca", "anna")
    with pytest.raises(kofn.Error, match="anna.key.*belongs to its certificate"):
        kofn.serve(where, **{**papers, "tls_key": tmp_path / "anna.key"})
