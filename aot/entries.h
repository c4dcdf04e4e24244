// Libraries with several entries: which names they get, what is each entry's own and what they share.
//
// What: every entry is planned and compiled as a program of its own; its interface is a CompiledModel called
//   <library>_<entry>. Constants, weights, pool, arena and the runtime's parts are the library's, and there once.
// Guarantees: a library with one program has no entries, and is as if there were none of this.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "aot/targets/target.h"

namespace kiln {

// Makes the interfaces of `programs`, if they are several, and refuses options that are of one program.
absl::Status BeginEntries(const std::vector<EntryPrograms>& programs, const CompileOptions& options,
                          CompiledModel* library);

// An error that names no place, with the entry that it is of.
absl::Status SayWhichEntry(const absl::Status& error, const CompiledModel& entry);

// Once all are planned: the figures of the library, and what a set of weights gives to its entries.
absl::Status JoinEntries(const CompileOptions& options, CompiledModel* library);

// Once the symbols of the library are known: those of its entries.
void NameSymbolsOfEntries(CompiledModel* library);

// The objects by which hosts know the library's programs, and those that run them with weights.
absl::Status AddInterfaceObjects(Compilation* c);

}  // namespace kiln
