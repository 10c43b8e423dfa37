"""Constructors of the patterns that are most frequent among the records of a compilation (``record.py``).

They are here to be compiled when this module is, and not in each process. Made by ``record.source``; a test compares.
"""

# ruff: noqa: E501, E702, F821
# mypy: ignore-errors
# fmt: off

def init_v(self, v0): self.v0 = v0
def init_ff(self, v0, v1): self.v0 = make0() if v0 is MISSING else v0; self.v1 = make1() if v1 is MISSING else v1
def init_vv(self, v0, v1): self.v0 = v0; self.v1 = v1
def init_ffv(self, v0, v1, v2): self.v0 = make0() if v0 is MISSING else v0; self.v1 = make1() if v1 is MISSING else v1; self.v2 = v2
def init_vff(self, v0, v1, v2): self.v0 = v0; self.v1 = make1() if v1 is MISSING else v1; self.v2 = make2() if v2 is MISSING else v2
def init_vvf(self, v0, v1, v2): self.v0 = v0; self.v1 = v1; self.v2 = make2() if v2 is MISSING else v2
def init_vvv(self, v0, v1, v2): self.v0 = v0; self.v1 = v1; self.v2 = v2
def init_vfvf(self, v0, v1, v2, v3): self.v0 = v0; self.v1 = make1() if v1 is MISSING else v1; self.v2 = v2; self.v3 = make3() if v3 is MISSING else v3
def init_vvff(self, v0, v1, v2, v3): self.v0 = v0; self.v1 = v1; self.v2 = make2() if v2 is MISSING else v2; self.v3 = make3() if v3 is MISSING else v3
def init_vvvv(self, v0, v1, v2, v3): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3
def init_vvvvf(self, v0, v1, v2, v3, v4): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = make4() if v4 is MISSING else v4
def init_vvvvv(self, v0, v1, v2, v3, v4): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4
def init_vvvfvf(self, v0, v1, v2, v3, v4, v5): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = make3() if v3 is MISSING else v3; self.v4 = v4; self.v5 = make5() if v5 is MISSING else v5
def init_vvvvff(self, v0, v1, v2, v3, v4, v5): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = make4() if v4 is MISSING else v4; self.v5 = make5() if v5 is MISSING else v5
def init_vvvvvf(self, v0, v1, v2, v3, v4, v5): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = make5() if v5 is MISSING else v5
def init_vvvvvv(self, v0, v1, v2, v3, v4, v5): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5
def init_vvffffv(self, v0, v1, v2, v3, v4, v5, v6): self.v0 = v0; self.v1 = v1; self.v2 = make2() if v2 is MISSING else v2; self.v3 = make3() if v3 is MISSING else v3; self.v4 = make4() if v4 is MISSING else v4; self.v5 = make5() if v5 is MISSING else v5; self.v6 = v6
def init_vvvvvvv(self, v0, v1, v2, v3, v4, v5, v6): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6
def init_vfffffff(self, v0, v1, v2, v3, v4, v5, v6, v7): self.v0 = v0; self.v1 = make1() if v1 is MISSING else v1; self.v2 = make2() if v2 is MISSING else v2; self.v3 = make3() if v3 is MISSING else v3; self.v4 = make4() if v4 is MISSING else v4; self.v5 = make5() if v5 is MISSING else v5; self.v6 = make6() if v6 is MISSING else v6; self.v7 = make7() if v7 is MISSING else v7
def init_vvvvvvvf(self, v0, v1, v2, v3, v4, v5, v6, v7): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = make7() if v7 is MISSING else v7
def init_vvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7
def init_vvvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8
def init_vvvvvffvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = make5() if v5 is MISSING else v5; self.v6 = make6() if v6 is MISSING else v6; self.v7 = v7; self.v8 = v8; self.v9 = v9
def init_vvvvvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8; self.v9 = v9; self.v10 = v10
def init_vvffffvf_post(self, v0, v1, v2, v3, v4, v5, v6, v7): self.v0 = v0; self.v1 = v1; self.v2 = make2() if v2 is MISSING else v2; self.v3 = make3() if v3 is MISSING else v3; self.v4 = make4() if v4 is MISSING else v4; self.v5 = make5() if v5 is MISSING else v5; self.v6 = v6; self.v7 = make7() if v7 is MISSING else v7; self.__post_init__()
def init_vvvvvvvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8; self.v9 = v9; self.v10 = v10; self.v11 = v11; self.v12 = v12
def init_vvvvvvvvvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8; self.v9 = v9; self.v10 = v10; self.v11 = v11; self.v12 = v12; self.v13 = v13; self.v14 = v14
def init_vvvvvvvvvvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8; self.v9 = v9; self.v10 = v10; self.v11 = v11; self.v12 = v12; self.v13 = v13; self.v14 = v14; self.v15 = v15
def init_vvvvvvvfvffvfvvvvvvvfffv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = make7() if v7 is MISSING else v7; self.v8 = v8; self.v9 = make9() if v9 is MISSING else v9; self.v10 = make10() if v10 is MISSING else v10; self.v11 = v11; self.v12 = make12() if v12 is MISSING else v12; self.v13 = v13; self.v14 = v14; self.v15 = v15; self.v16 = v16; self.v17 = v17; self.v18 = v18; self.v19 = v19; self.v20 = make20() if v20 is MISSING else v20; self.v21 = make21() if v21 is MISSING else v21; self.v22 = make22() if v22 is MISSING else v22; self.v23 = v23
def init_vvvvvvvvvvvvvvvvvvvvvvffvvvvvvvvfvvvvvvv(self, v0, v1, v2, v3, v4, v5, v6, v7, v8, v9, v10, v11, v12, v13, v14, v15, v16, v17, v18, v19, v20, v21, v22, v23, v24, v25, v26, v27, v28, v29, v30, v31, v32, v33, v34, v35, v36, v37, v38, v39): self.v0 = v0; self.v1 = v1; self.v2 = v2; self.v3 = v3; self.v4 = v4; self.v5 = v5; self.v6 = v6; self.v7 = v7; self.v8 = v8; self.v9 = v9; self.v10 = v10; self.v11 = v11; self.v12 = v12; self.v13 = v13; self.v14 = v14; self.v15 = v15; self.v16 = v16; self.v17 = v17; self.v18 = v18; self.v19 = v19; self.v20 = v20; self.v21 = v21; self.v22 = make22() if v22 is MISSING else v22; self.v23 = make23() if v23 is MISSING else v23; self.v24 = v24; self.v25 = v25; self.v26 = v26; self.v27 = v27; self.v28 = v28; self.v29 = v29; self.v30 = v30; self.v31 = v31; self.v32 = make32() if v32 is MISSING else v32; self.v33 = v33; self.v34 = v34; self.v35 = v35; self.v36 = v36; self.v37 = v37; self.v38 = v38; self.v39 = v39
