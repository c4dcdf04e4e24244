#include "codegen/link/elf_image.h"

#include <algorithm>
#include <cstring>

#include "compiler/base/status.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/MemoryBuffer.h"

namespace kiln {
namespace {

using Elf = llvm::object::ELF64LE;
using File = llvm::object::ELFFile<Elf>;

class Image : public ElfImage {
 public:
  Image(std::unique_ptr<llvm::MemoryBuffer> bytes, File file) : bytes_(std::move(bytes)), file_(std::move(file)) {}

  // Where segments lie, what is exported, and the words that hold addresses.
  llvm::Error Index() {
    auto headers = file_.program_headers();
    if (!headers) return headers.takeError();
    for (const Elf::Phdr& h : *headers)
      if (h.p_type == llvm::ELF::PT_LOAD) segments_.push_back({h.p_vaddr, h.p_offset, h.p_filesz});
    auto sections = file_.sections();
    if (!sections) return sections.takeError();
    for (const Elf::Shdr& s : *sections) {
      llvm::Error e = s.sh_type == llvm::ELF::SHT_DYNSYM ? IndexSymbols(s)
                      : s.sh_type == llvm::ELF::SHT_RELA && (s.sh_flags & llvm::ELF::SHF_ALLOC)
                          ? IndexRelocations(s)
                          : llvm::Error::success();
      if (e) return e;
    }
    return llvm::Error::success();
  }

  absl::StatusOr<uint64_t> AddressOf(absl::string_view symbol) const override {
    const auto at = symbols_.find(std::string(symbol));
    if (at == symbols_.end()) return absl::NotFoundError(absl::StrCat("it does not show ", symbol));
    return at->second;
  }

  absl::Status Read(uint64_t address, void* to, size_t bytes) const override {
    const absl::string_view found = From(address);
    if (found.size() < bytes) return InvalidArgument("it refers to an address outside of itself");
    std::memcpy(to, found.data(), bytes);
    for (auto r = relocated_.lower_bound(address);
         r != relocated_.end() && r->first + sizeof(uint64_t) <= address + bytes; ++r)
      std::memcpy(static_cast<char*>(to) + (r->first - address), &r->second, sizeof(uint64_t));
    return absl::OkStatus();
  }

  absl::StatusOr<std::string> Text(uint64_t address) const override {
    const absl::string_view found = From(address);
    const size_t end = found.find('\0');
    if (end == absl::string_view::npos) return InvalidArgument("it refers to a text outside of itself");
    return std::string(found.substr(0, end));
  }

 private:
  struct Segment {
    uint64_t address, offset, bytes;
  };

  // The rest of the segment that the address lies in; empty if it lies in none.
  absl::string_view From(uint64_t address) const {
    const llvm::StringRef all = bytes_->getBuffer();
    for (const Segment& s : segments_) {
      if (address < s.address || address - s.address >= s.bytes || s.offset > all.size()) continue;
      const llvm::StringRef rest = all.substr(s.offset, s.bytes).substr(address - s.address);
      return {rest.data(), rest.size()};
    }
    return {};
  }

  llvm::Error IndexSymbols(const Elf::Shdr& section) {
    auto symbols = file_.symbols(&section);
    if (!symbols) return symbols.takeError();
    auto names = file_.getStringTableForSymtab(section);
    if (!names) return names.takeError();
    for (const Elf::Sym& s : *symbols) {
      auto name = s.getName(*names);
      if (!name) return name.takeError();
      if (s.st_shndx != llvm::ELF::SHN_UNDEF) symbols_[name->str()] = s.st_value;
    }
    return llvm::Error::success();
  }

  llvm::Error IndexRelocations(const Elf::Shdr& section) {
    auto relocations = file_.relas(section);
    if (!relocations) return relocations.takeError();
    for (const Elf::Rela& r : *relocations)
      if (r.getType(false) == llvm::ELF::R_X86_64_RELATIVE) relocated_[r.r_offset] = static_cast<uint64_t>(r.r_addend);
    return llvm::Error::success();
  }

  std::unique_ptr<llvm::MemoryBuffer> bytes_;
  File file_;
  std::vector<Segment> segments_;
  std::map<std::string, uint64_t> symbols_;
  std::map<uint64_t, uint64_t> relocated_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ElfImage>> ElfImage::Open(const std::string& path) {
  auto bytes = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!bytes) return InvalidArgument(path, ": error: cannot read: ", bytes.getError().message());
  const auto no_object = [&](llvm::Error e) {
    return InvalidArgument(path, ": error: no shared object: ", llvm::toString(std::move(e)));
  };
  auto file = File::create((*bytes)->getBuffer());
  if (!file) return no_object(file.takeError());
  const Elf::Ehdr& header = file->getHeader();
  if (!header.checkMagic() || header.e_type != llvm::ELF::ET_DYN || header.e_machine != llvm::ELF::EM_X86_64)
    return InvalidArgument(path, ": error: no shared object for x86-64");
  auto image = std::make_unique<Image>(std::move(*bytes), std::move(*file));
  if (llvm::Error e = image->Index()) return no_object(std::move(e));
  return image;
}

}  // namespace kiln
