#include "aot/tools/build_identity.h"

#include <elf.h>
#include <link.h>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "codegen/llvm/sha256.h"
#include "compiler/base/status.h"
#include "compiler/base/text.h"

namespace kiln {
namespace {

struct Loaded {
  std::string file, build_id;
};

// The bytes of the build ID among the notes of a segment; empty if there is none.
absl::string_view BuildIdIn(const char* notes, size_t bytes) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes + at);
    const char* name = notes + at + sizeof *note;
    const char* value = name + padded(note->n_namesz);
    if (note->n_type == NT_GNU_BUILD_ID && absl::string_view(name, note->n_namesz) == absl::string_view("GNU", 4))
      return {value, note->n_descsz};
    at += sizeof *note + padded(note->n_namesz) + padded(note->n_descsz);
  }
  return {};
}

int Note(dl_phdr_info* object, size_t, void* list) {
  // The kernel's own object is of the machine, and computes nothing here.
  if (absl::StartsWith(object->dlpi_name, "linux-vdso")) return 0;
  Loaded l{*object->dlpi_name ? object->dlpi_name : "/proc/self/exe", ""};
  for (int k = 0; k < object->dlpi_phnum && l.build_id.empty(); ++k) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[k];
    if (segment.p_type == PT_NOTE)
      l.build_id =
          std::string(BuildIdIn(reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr), segment.p_memsz));
  }
  static_cast<std::vector<Loaded>*>(list)->push_back(std::move(l));
  return 0;
}

}  // namespace

absl::StatusOr<std::string> BuildIdentity() {
  std::vector<Loaded> objects;
  dl_iterate_phdr(Note, &objects);
  std::string out;
  for (const Loaded& l : objects) {
    if (!l.build_id.empty()) {
      absl::StrAppend(&out, absl::BytesToHexString(l.build_id), "\n");
      continue;
    }
    ASSIGN_OR_RETURN(const std::string bytes, ReadFile(l.file));
    Sha256 hash;
    hash.Add(bytes);
    absl::StrAppend(&out, "sha256 ", hash.Hex(), "\n");
  }
  return out;
}

}  // namespace kiln
