"""Size and CRC-32 (``ptxdsl/files/digest.py``)."""

from ptxdsl.files.digest import fingerprint


def test_the_check_value_of_crc_32() -> None:
    assert fingerprint(b"123456789") == "9:cbf43926"  # as catalogues of CRCs have it
    assert fingerprint(b"") == "0:00000000"
