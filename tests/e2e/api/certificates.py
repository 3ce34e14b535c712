"""Certificates of other hands."""

import os
import subprocess


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def make_certificate(folder, name, subject, ca, extensions=""):
    """Signed by `ca` (certificate, key); None: by itself."""
    key, request, cert = (os.path.join(folder, f"{name}.{end}") for end in ("key", "csr", "crt"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-keyout", key, "-out", request, "-subj", subject)
    signer = ["-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial"] if ca else ["-signkey", key]
    if extensions:
        with open(f"{request}.ext", "w", encoding="utf-8") as file:
            file.write(extensions)
        signer += ["-extfile", f"{request}.ext"]
    openssl("x509", "-req", "-in", request, "-out", cert, "-days", "1", *signer)
    return cert, key
