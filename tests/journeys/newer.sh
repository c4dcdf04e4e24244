# what: the same package and the same wheel on Debian 13: its GCC, its Python, a shared object under its glibc
# packages: g++ python3-venv
# suite: trixie
# kiln: deb
# expects: at least 97 % of 360 digits
kiln compile /examples/digits/digits.mlir --name digits -o build --shared
g++ -std=c++23 -O2 -Wall -Wextra -Werror -Ibuild /examples/digits/digits_main.cc build/libdigits.a -lm -lpthread -o app
test "$(./app /examples/digits/digit_7.pgm)" = 7
kiln diff /examples/digits/digits.mlir --atol 1e-6 --rtol 1e-5
python3 -m venv env
env/bin/pip install --quiet /kiln_aot-*.whl
cat > digits.py <<'END'
import kiln
import numpy as np

digits = kiln.load("build/libdigits.so", threads=2)
rows = np.fromfile("/examples/digits/heldout.bin", np.uint8).reshape(-1, 65)  # an image and what it shows
right = sum(digits(row[None, :64].astype(np.float32)).argmax() == row[64] for row in rows)
print("at least 97 %" if right >= 0.97 * len(rows) else f"{right}", f"of {len(rows)} digits")
END
env/bin/python digits.py
