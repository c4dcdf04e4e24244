// How the kiln command ends where it cannot go on, and when it is done.
#pragma once

namespace kiln {

// From here on memory or threads that run out, in any thread, end the process with one error and exit code 1; so does
// an error that LLVM does not return. No file of a product is left half written by it: these get their names last.
void EndWithErrors();

// Exit code of a command that ended with `code`: 1 if its standard output could not be written.
int Finished(int code);

}  // namespace kiln
