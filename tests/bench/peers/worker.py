"""One peer on one workload, in a process of its own: says READY, then runs for as long as each line of its input says.

usage: worker.py PEER WORKLOAD THREADS FOLDER PROCESSORS REALTIME

FOLDER has what prepare.py made. The first result is written to FOLDER/PEER-THREADS.npy.
"""

import ctypes
import json
import os
import sys
import time


def limit(threads, processors, realtime):
    """Processors, priority and the variables that libraries read when they start."""
    os.sched_setaffinity(0, processors[:threads])
    if realtime:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    os.environ.update(OMP_NUM_THREADS=str(threads), JAX_PLATFORMS="cpu", TF_CPP_MIN_LOG_LEVEL="2")
    if threads == 1:
        os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"


def kiln(workload, inputs, threads, folder):
    """The shared object, by its C interface: what a program that is linked with the library gets."""
    import numpy as np
    from kiln import _abi, _arrays, load

    model = load(os.path.join(folder, "kiln", f"lib{workload.name}.so"), threads=threads)
    struct = model._struct
    given = [_arrays.aligned_empty(x.shape, x.dtype, 64) for x in inputs]
    for to, x in zip(given, inputs):
        to[...] = x
    made = [_arrays.aligned_empty(r.shape, np.dtype(r.dtype), 64) for r in model.results]
    arenas = [_arrays.aligned_empty((n,), np.dtype(np.uint8), 64) for n in (struct.arena_bytes, struct.slow_arena_bytes)]
    pointers = (ctypes.c_void_p * (len(given) + len(made)))(*(a.ctypes.data for a in (*given, *made)))
    call = _abi.Call(
        arguments=ctypes.addressof(pointers),
        results=ctypes.addressof(pointers) + len(given) * ctypes.sizeof(ctypes.c_void_p),
        arena=_abi.Arena(arenas[0].ctypes.data, arenas[0].nbytes),
        slow_arena=_abi.Arena(arenas[1].ctypes.data, arenas[1].nbytes),
        pool=model._pool._of(model._library, struct),
    )
    run, reference = struct.run, ctypes.byref(call)

    def once():
        if run(reference) != 0:
            raise RuntimeError("the run failed")
        return made[0]

    once.keep = (model, given, arenas, pointers)
    return once


def xla(workload, inputs, threads, folder):
    del threads, folder
    import jax
    from jax_ops import Jax

    counted = Jax()
    jax.eval_shape(lambda *x: workload.build(counted, *x), *inputs)
    weights = [jax.device_put(w) for w in counted.weights]
    taken = [jax.device_put(x) for x in inputs]
    run = jax.jit(lambda w, *x: workload.build(Jax(w), *x)).lower(weights, *taken).compile()
    return lambda: jax.block_until_ready(run(weights, *taken))[0]


def iree(workload, inputs, threads, folder):
    del workload
    import iree.runtime as runtime

    config = runtime.Config("local-sync" if threads == 1 else "local-task")
    context = runtime.SystemContext(config=config)
    module = runtime.VmModule.mmap(context.instance, os.path.join(folder, "iree.vmfb"))
    context.add_vm_module(module)
    run = context.modules[module.name]["main"]
    taken = [runtime.asdevicearray(config.device, x) for x in inputs]

    def once():
        results = run(*taken)
        return results[0] if isinstance(results, (tuple, list)) else results

    return once


def in_order(workload, inputs):
    from onnx_ops import features_first

    return [features_first(x) if k in workload.images else x for k, x in enumerate(inputs)]


def ort(workload, inputs, threads, folder):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    path = os.path.join(folder, "model.onnx")
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    taken = [onnxruntime.OrtValue.ortvalue_from_numpy(x) for x in in_order(workload, inputs)]
    for k, x in enumerate(taken):
        binding.bind_ortvalue_input(f"x{k}", x)
    for result in session.get_outputs():
        made = onnxruntime.OrtValue.ortvalue_from_shape_and_type(result.shape, "float32", "cpu")
        binding.bind_ortvalue_output(result.name, made)
    first = binding.get_outputs()[0]

    def once():
        session.run_with_iobinding(binding)
        return first

    return once


def openvino(workload, inputs, threads, folder):
    import openvino as ov

    settings = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(os.path.join(folder, "model.onnx"), "CPU", settings)
    request = compiled.create_infer_request()
    for k, x in enumerate(in_order(workload, inputs)):
        request.set_input_tensor(k, ov.Tensor(x))
    first = request.get_output_tensor(0)

    def once():
        request.start_async()
        request.wait()
        return first.data

    return once


def onednn(workload, inputs, threads, folder):
    del threads, folder
    from onednn import prepared

    run, out = prepared(workload.onednn, inputs)

    def once():
        run()
        return out

    return once


PEERS = {"kiln": kiln, "xla": xla, "iree": iree, "ort": ort, "openvino": openvino, "onednn": onednn}


def as_numpy(result):
    import numpy as np

    if hasattr(result, "to_host"):
        return result.to_host()
    return result.numpy() if hasattr(result, "numpy") else np.asarray(result)


def turn(once, seconds):
    times, clock = [], time.perf_counter_ns
    end = clock() + seconds * 1e9
    while len(times) < 3 or (clock() < end and len(times) < 100000):
        start = clock()
        once()
        times.append(clock() - start)
    times.sort()
    return {"least_us": times[0] / 1e3, "median_us": times[len(times) // 2] / 1e3, "runs": len(times)}


def main():
    peer, name, threads, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
    limit(threads, [int(p) for p in sys.argv[5].split(",")], sys.argv[6] == "1")
    import numpy as np
    from workloads import WORKLOADS

    workload = next(w for w in WORKLOADS if w.name == name)
    once = PEERS[peer](workload, workload.inputs(), threads, folder)
    np.save(os.path.join(folder, f"{peer}-{threads}.npy"), as_numpy(once()))
    turn(once, 0.05)
    print("READY", flush=True)
    for line in sys.stdin:
        print(json.dumps(turn(once, float(line))), flush=True)


if __name__ == "__main__":
    main()
