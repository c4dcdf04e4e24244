// LLD can also optimise bitcode: for every target that this LLVM was built with, and by Polly. Kiln links finished
// x86-64 objects only, so what would make the other targets and Polly a part of kiln does nothing here.
#include "llvm/Passes/PassPlugin.h"

llvm::PassPluginLibraryInfo getPollyPluginInfo() { return {}; }

// Targets that kiln has code for: ABSENT is empty for them.
#define KILN_HAS_NVPTX present,
#define KILN_HAS_X86 present,
#define SECOND(first, second, ...) second
#define UNLESS(has, definition) SECOND(has, definition, )
#define ABSENT(target, part) UNLESS(KILN_HAS_##target, void LLVMInitialize##target##part(){})

extern "C" {
#define LLVM_TARGET(target) ABSENT(target, TargetInfo) ABSENT(target, Target) ABSENT(target, TargetMC)
#include "llvm/Config/Targets.def"
#define LLVM_ASM_PARSER(target) ABSENT(target, AsmParser)
#include "llvm/Config/AsmParsers.def"
#define LLVM_ASM_PRINTER(target) ABSENT(target, AsmPrinter)
#include "llvm/Config/AsmPrinters.def"
}
