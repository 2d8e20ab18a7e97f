from setuptools import setup

setup(cffi_modules=["kofn/_build.py:ffi"])
