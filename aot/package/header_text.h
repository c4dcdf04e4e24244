// What the files that write generated headers share.
//
// Headers are written as templates in which $NAME is the model's name, $UPPER the same in capitals, and $[f$] names the
// symbol of function f: symbols carry a hash (fingerprint.h), names in headers do not. What entries of one library
// share is $LIBRARY's, and functions of theirs that are the library's own are $L[f$]; for a library with one program
// that is $NAME, and $[f$].
#pragma once

#include <functional>
#include <string>

#include "aot/compile.h"

namespace kiln {

// The C type that holds one element. Narrow floats are their bits; 4-bit integers take a byte.
std::string CType(PrimitiveType type);
// Elements of CType: complex numbers are pairs.
int64_t CTypeCount(const Shape& shape);
// What the front end calls a port, as comments show it; empty if that is its name, or cannot stand in a comment.
std::string PathText(const Port& port);
// The C++ element type, which keeps apart what C does not: "::kiln::bf16", "::std::complex<float>", "bool".
std::string CppType(PrimitiveType type);
// The view of an array whose elements are all of `shape`, in row-major order; of as many elements in one dimension
// where the layout is another.
std::string CppArray(const Shape& shape, bool constant);
// The same in a GPU's memory.
std::string CppDeviceArray(const Shape& shape, bool constant);
// The type of an argument or result in the C++ header: without extents if they differ by batch.
std::string CppPort(const CompiledModel& model, bool result, size_t k);
// Includes that the header needs for the element types of its arrays, each on a line.
std::string CppIncludes(const CompiledModel& model);

// The shape of a port as comments show it: with `batch` where the extent is the batch size.
std::string PortText(const CompiledModel& model, bool result, size_t k);

// Of a partitioned program: functions that cut whole arguments into the devices' parts and join the parts of results,
// in C and as members of the C++ class; empty for another program. What a port is a part of, as comments show it.
std::string TileFunctions(const CompiledModel& model);
std::string TileMembers(const CompiledModel& model);
std::string TilingText(const Port& port);

// Arguments and results as structs that nest as the program's own do, and a run that takes them.
std::string NestedStructs(const CompiledModel& model);
std::string NestedRun(const CompiledModel& model);
// The results of `results`, each behind a comma, as a call passes them.
std::string NestedResults(const CompiledModel& model);

// Libraries that measure or check their operations: types, C functions, members of the C++ class; empty for
// others.
std::string WatchTypes(const CompiledModel& model);
std::string WatchDeclarations(const CompiledModel& model);
std::string WatchMembers(const CompiledModel& model);
// Which of the library's operations are an entry's.
std::string WatchedRange(const CompiledModel& entry);

// Devices as ranks of MPI in the C header, and as a class in the C++ header.
std::string MpiDeclarations();
std::string MpiClass();

// Declarations of the functions that the host program provides; empty without custom calls.
std::string CustomCallDeclarations(const CompiledModel& model);
// The GPU program in the C header, and as a class in the C++ header.
std::string GpuDeclarations(const CompiledModel& model);
std::string GpuClass(const CompiledModel& model);

// Which arguments a function of the C++ class takes: all, or those that no set of weights gives.
enum class Taken { kAll, kNoWeights };

// Parameters of typed C++ functions: arguments, then the results that lie in no argument, each after `separator`.
// `type` says how a port is declared.
std::string TypedParameters(const CompiledModel& model, const std::string& separator,
                            const std::function<std::string(const Port&, bool result)>& type,
                            Taken taken = Taken::kAll);
// The same with their types of the class: Argument_x in_x, Result_y out_y.
std::string ArrayParameters(const CompiledModel& model, Taken taken = Taken::kAll);
// The tables of pointers of the C interface; `address` gives that of a parameter by its name.
std::string PointerTables(const CompiledModel& model, const std::function<std::string(const std::string&)>& address,
                          Taken taken = Taken::kAll);
// What gives the address of a parameter that is an array.
std::string DataOf(const std::string& name);
// Their names.
std::string TypedNames(const CompiledModel& model);

// Statements that return the status EXTENT for arrays that were made of another number of elements.
std::string FitChecks(const CompiledModel& model, Taken taken = Taken::kAll);

std::string FillTemplate(std::string text, const CompiledModel& model);

}  // namespace kiln
