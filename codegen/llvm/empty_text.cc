#include "codegen/llvm/empty_text.h"

#include "compiler/base/status.h"
#include "llvm/ObjCopy/ConfigManager.h"
#include "llvm/ObjCopy/ObjCopy.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/raw_ostream.h"

namespace kiln {
namespace {

llvm::Expected<std::string> Rewritten(const std::string& bytes) {
  constexpr char kText[] = ".text";
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(bytes, "object"));
  if (!object) return object.takeError();
  llvm::objcopy::ConfigManager config;
  for (const llvm::object::SectionRef& section : (*object)->sections()) {
    auto name = section.getName();
    if (!name) return name.takeError();
    if (*name != kText || section.getSize() != 0) continue;
    const auto as_it_is = [](llvm::Error e) { return e; };
    auto literal = llvm::objcopy::NameOrPattern::create(kText, llvm::objcopy::MatchStyle::Literal, as_it_is);
    if (llvm::Error e = config.Common.ToRemove.addMatcher(std::move(literal))) return e;
  }
  if (config.Common.ToRemove.empty()) return bytes;
  std::string out;
  llvm::raw_string_ostream stream(out);
  if (llvm::Error e = llvm::objcopy::executeObjcopyOnBinary(config, **object, stream)) return e;
  stream.flush();
  return out;
}

}  // namespace

absl::StatusOr<std::string> WithoutEmptyText(const std::string& object) {
  llvm::Expected<std::string> out = Rewritten(object);
  if (!out) return Internal("cannot leave out an empty section: ", llvm::toString(out.takeError()));
  return *std::move(out);
}

}  // namespace kiln
