#include "codegen/llvm/runtime_object.h"

#include "codegen/kernels/runtime_objects.h"
#include "codegen/llvm/empty_text.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln {
namespace {

constexpr char kModel[] = "kiln_model", kLibrary[] = "kiln_library";

const EmbeddedObject& Embedded(RuntimePart part, Sanitizer sanitizer, bool unwound) {
  static const EmbeddedObject* const kObjects[] = {
#define RUNTIME_PART(name, ...) k##name##Objects,
#include "codegen/kernels/runtime_parts.def"
  };
  constexpr int kUnwound = 3;
  return kObjects[static_cast<int>(part)]
                 [unwound && sanitizer == Sanitizer::kNone ? kUnwound : static_cast<int>(sanitizer)];
}

}  // namespace

std::vector<RuntimeMember> RuntimeMembers(unsigned needs) {
  std::vector<RuntimeMember> out;
#define RUNTIME_PART(name, member, need) \
  if (needs & RuntimeNeed::need) out.push_back({RuntimePart::name, member});
#include "codegen/kernels/runtime_parts.def"
  return out;
}

absl::StatusOr<std::string> RuntimeObject(const std::string& name, const std::string& library, RuntimePart part,
                                          Sanitizer sanitizer, bool unwound) {
  const EmbeddedObject& embedded = Embedded(part, sanitizer, unwound);
  const llvm::MemoryBufferRef bytes(llvm::StringRef(reinterpret_cast<const char*>(embedded.data), embedded.size), name);
  auto object = llvm::object::ObjectFile::createObjectFile(bytes);
  if (!object) return Internal("cannot read the runtime: ", llvm::toString(object.takeError()));
  llvm::objcopy::ConfigManager config;
  // Names of static functions are for debuggers.
  if (!unwound && sanitizer == Sanitizer::kNone) config.Common.StripUnneeded = true;
  llvm::StringMap<std::string> names;  // the configuration points into it
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto old = symbol.getName();
    if (!old) return Internal("cannot read the runtime: ", llvm::toString(old.takeError()));
    const bool of_library = old->starts_with(kLibrary);
    if (!of_library && !old->starts_with(kModel)) continue;
    std::string& renamed = names[*old];
    renamed = (of_library ? library : name) + old->substr(of_library ? sizeof kLibrary - 1 : sizeof kModel - 1).str();
    config.Common.SymbolsToRename[*old] = renamed;
  }
  std::string out;
  llvm::raw_string_ostream stream(out);
  if (llvm::Error e = llvm::objcopy::executeObjcopyOnBinary(config, **object, stream))
    return Internal("cannot rename the runtime's symbols: ", llvm::toString(std::move(e)));
  stream.flush();
  return WithoutEmptyText(out);
}

}  // namespace kiln
