#include "aot/package/model_reader.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "aot/package/shared_library.h"
#include "codegen/link/elf_image.h"
#include "compiler/base/status.h"
#include "compiler/base/temp_folder.h"
#include "compiler/hlo/types.h"
#include "runtime_min/kiln.h"

namespace kiln {
namespace {

// What counts say is only believed up to these, so that a broken file ends in an error and not in all memory.
constexpr int64_t kMostArrays = 1 << 20, kMostRank = 1 << 10, kMostTexts = 1 << 10, kMostPartitions = 1 << 20;

template <typename T>
uint64_t AddressIn(T* pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

class Reader {
 public:
  explicit Reader(const ElfImage& image) : image_(image) {}

  absl::StatusOr<std::vector<ModelFacts>> Models() const {
    ASSIGN_OR_RETURN(const uint64_t at, image_.AddressOf(KILN_MODELS_SYMBOL));
    ASSIGN_OR_RETURN(const auto list, Struct<kiln_model_list>(at, sizeof(kiln_model_list)));
    ASSIGN_OR_RETURN(const auto addresses, List<uint64_t>(AddressIn(list.models), list.count, kMostArrays));
    std::vector<ModelFacts> out;
    for (const uint64_t address : addresses) {
      ASSIGN_OR_RETURN(ModelFacts m, Model(address));
      out.push_back(std::move(m));
    }
    return out;
  }

 private:
  // The first `bytes` bytes of a struct, which may have fewer or more than this kiln knows; zeros behind them.
  template <typename T>
  absl::StatusOr<T> Struct(uint64_t address, size_t bytes) const {
    T out = {};
    RETURN_IF_ERROR(image_.Read(address, &out, std::min(bytes, sizeof out)));
    return out;
  }

  template <typename T>
  absl::StatusOr<std::vector<T>> List(uint64_t address, int64_t count, int64_t most) const {
    if (count < 0 || count > most) return InvalidArgument("it has a list of ", count);
    std::vector<T> out(static_cast<size_t>(count));
    if (count) RETURN_IF_ERROR(image_.Read(address, out.data(), out.size() * sizeof(T)));
    return out;
  }

  absl::StatusOr<std::vector<std::string>> Texts(uint64_t address) const {
    std::vector<std::string> out;
    for (int64_t k = 0; k < kMostTexts; ++k) {
      ASSIGN_OR_RETURN(const auto text, Struct<uint64_t>(address + k * sizeof(uint64_t), sizeof(uint64_t)));
      if (!text) return out;
      ASSIGN_OR_RETURN(std::string t, image_.Text(text));
      out.push_back(std::move(t));
    }
    return InvalidArgument("it has a list of names without an end");
  }

  absl::StatusOr<ModelFacts> Model(uint64_t address) const {
    ASSIGN_OR_RETURN(const auto bytes, Struct<uint32_t>(address, sizeof(uint32_t)));
    ASSIGN_OR_RETURN(const auto m, Struct<kiln_model>(address, bytes));
    ModelFacts out;
    ASSIGN_OR_RETURN(out.name, image_.Text(AddressIn(m.name)));
    ASSIGN_OR_RETURN(out.kiln_version, image_.Text(AddressIn(m.kiln_version)));
    ASSIGN_OR_RETURN(out.build, image_.Text(AddressIn(m.build)));
    ASSIGN_OR_RETURN(out.cpu_levels, Texts(AddressIn(m.cpu_levels)));
    ASSIGN_OR_RETURN(out.gpu_targets, Texts(AddressIn(m.gpu_targets)));
    ASSIGN_OR_RETURN(out.callbacks, Texts(AddressIn(m.callbacks)));
    if (KILN_HAS(kiln_model, entry, bytes) && m.entry) {
      ASSIGN_OR_RETURN(out.library, image_.Text(AddressIn(m.library)));
      ASSIGN_OR_RETURN(out.entry, image_.Text(AddressIn(m.entry)));
    }
    out.model_version = m.version;
    out.abi_version = m.abi_version;
    out.arena_bytes = m.arena_bytes;
    out.arena_alignment = m.arena_alignment;
    out.slow_arena_bytes = m.slow_arena_bytes;
    out.gpu_arena_bytes = m.gpu_arena_bytes;
    if (KILN_HAS(kiln_model, gpu_host_arena_bytes, bytes)) out.gpu_host_arena_bytes = m.gpu_host_arena_bytes;
    out.constant_bytes = m.constant_bytes;
    out.stack_bytes = m.stack_bytes;
    out.threads = m.threads;
    out.devices = m.devices;
    out.communicates = m.communicates != 0;
    out.on_cpu = m.run != nullptr;
    if (m.variants < 0 || m.variants > kMostArrays) return InvalidArgument("it has ", m.variants, " batch sizes");
    for (int64_t k = 0; k < m.variants; ++k) {
      ASSIGN_OR_RETURN(const auto v, Struct<kiln_variant>(AddressIn(m.variant) + k * m.variant_bytes, m.variant_bytes));
      VariantFacts variant = {v.batch, v.arena_bytes, {}, {}};
      RETURN_IF_ERROR(Arrays(AddressIn(v.arguments), m.arguments, m.array_bytes, &variant.arguments));
      RETURN_IF_ERROR(Arrays(AddressIn(v.results), m.results, m.array_bytes, &variant.results));
      out.variants.push_back(std::move(variant));
    }
    return out;
  }

  absl::Status Arrays(uint64_t address, int64_t count, uint32_t step, std::vector<ArrayFacts>* out) const {
    if (count < 0 || count > kMostArrays) return InvalidArgument("it has ", count, " arrays");
    for (int64_t k = 0; k < count; ++k) {
      ASSIGN_OR_RETURN(const auto a, Struct<kiln_array>(address + static_cast<uint64_t>(k) * step, step));
      ASSIGN_OR_RETURN(ArrayFacts facts, Array(a));
      out->push_back(std::move(facts));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ArrayFacts> Array(const kiln_array& a) const {
    ArrayFacts out;
    ASSIGN_OR_RETURN(out.name, image_.Text(AddressIn(a.name)));
    ASSIGN_OR_RETURN(out.path, image_.Text(AddressIn(a.path)));
    const auto type = TypeFromProto(a.type);
    out.type = type ? std::string(TextOf(*type)) : absl::StrCat("type ", a.type);
    ASSIGN_OR_RETURN(out.extents, List<int64_t>(AddressIn(a.extents), a.rank, kMostRank));
    if (a.minor_to_major) {
      ASSIGN_OR_RETURN(out.minor_to_major, List<int64_t>(AddressIn(a.minor_to_major), a.rank, kMostRank));
    }
    out.bytes = a.bytes;
    out.alignment = a.alignment;
    out.alias = a.alias;
    out.low = a.low;
    out.high = a.high;
    out.weight = a.weight != 0;
    if (!a.tiling) return out;
    ASSIGN_OR_RETURN(const auto t, Struct<kiln_tiling>(AddressIn(a.tiling), sizeof(kiln_tiling)));
    ASSIGN_OR_RETURN(out.whole_extents, List<int64_t>(AddressIn(t.whole_extents), a.rank, kMostRank));
    ASSIGN_OR_RETURN(out.tiles, List<int64_t>(AddressIn(t.tiles), a.rank, kMostRank));
    ASSIGN_OR_RETURN(out.tile_of_partition,
                     List<int64_t>(AddressIn(t.tile_of_partition), t.partitions, kMostPartitions));
    return out;
  }

  const ElfImage& image_;
};

bool IsArchive(const std::string& path) {
  char magic[8] = {};
  FILE* f = std::fopen(path.c_str(), "rb");
  const bool read = f && std::fread(magic, 1, sizeof magic, f) == sizeof magic;
  if (f) std::fclose(f);
  return read && absl::string_view(magic, sizeof magic) == "!<arch>\n";
}

absl::StatusOr<std::vector<ModelFacts>> ReadSharedObject(const std::string& file, const std::string& named) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ElfImage> image, ElfImage::Open(file));
  auto models = Reader(*image).Models();
  if (!models.ok()) return InvalidArgument(named, ": error: no library of kiln's: ", models.status().message());
  return models;
}

}  // namespace

absl::StatusOr<std::vector<ModelFacts>> ReadModels(const std::string& path) {
  if (!IsArchive(path)) return ReadSharedObject(path, path);
  // Linked, its addresses are known.
  const TempFolder folder;
  RETURN_IF_ERROR(folder.Made());
  const std::string linked = folder.File("models.so");
  RETURN_IF_ERROR(LinkModels({path}, linked));
  return ReadSharedObject(linked, path);
}

}  // namespace kiln
