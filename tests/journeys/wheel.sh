# what: the wheel in a virtual environment, where there is neither compiler nor framework
# packages: python3-venv
# kiln: wheel
# expects: at least 97 % of 360 digits
# within: 120
python3 -m venv env
env/bin/pip install --quiet /kiln_aot-*.whl
cat > digits.py <<'END'
import kiln
import numpy as np

kiln.compile("/examples/digits/digits.mlir").write("build")
digits = kiln.load("build/libdigits.so", threads=2)
rows = np.fromfile("/examples/digits/heldout.bin", np.uint8).reshape(-1, 65)  # an image and what it shows
right = sum(digits(row[None, :64].astype(np.float32)).argmax() == row[64] for row in rows)
print("at least 97 %" if right >= 0.97 * len(rows) else f"{right}", f"of {len(rows)} digits")
END
env/bin/kiln --version
env/bin/kiln diff /examples/digits/digits.mlir --atol 1e-6 --rtol 1e-5
env/bin/python digits.py
