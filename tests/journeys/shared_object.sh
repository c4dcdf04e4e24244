# what: a shared object, where there is neither compiler nor linker
# packages: python3
# kiln: tar
# expects: digits: 1 argument, 1 result, ok
"$KILN_HOME/bin/kiln" compile /examples/digits/digits.mlir --name digits -o build --shared
"$KILN_HOME/bin/kiln" inspect build/libdigits.so
cat > load.py <<'END_OF_FILE'
import ctypes

class Model(ctypes.Structure):  # the first fields of kiln_model
    _fields_ = [("sizes", ctypes.c_uint32 * 6), ("name", ctypes.c_char_p), ("version", ctypes.c_char_p),
                ("build", ctypes.c_char_p), ("arguments", ctypes.c_int64), ("results", ctypes.c_int64)]

class Models(ctypes.Structure):
    _fields_ = [("bytes", ctypes.c_uint32), ("count", ctypes.c_uint32),
                ("models", ctypes.POINTER(ctypes.POINTER(Model)))]

m = Models.in_dll(ctypes.CDLL("build/libdigits.so"), "kiln_models").models[0].contents
print(f"{m.name.decode()}: {m.arguments} argument, {m.results} result, {'ok' if m.sizes[0] >= 232 else 'short'}")
END_OF_FILE
python3 load.py
