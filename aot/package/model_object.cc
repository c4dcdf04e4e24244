#include "aot/package/model_object.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "aot/compile.h"
#include "aot/package/manifest.h"
#include "aot/package/weights_table.h"
#include "codegen/llvm/object.h"
#include "runtime_min/abi.h"
#include "runtime_min/kiln.h"

namespace kiln {
namespace {

constexpr int64_t kStackBytes = int64_t{2} << 20;

// The table of kiln.h is types.def's.
constexpr int NumberOf(absl::string_view type) {
#define KILN_X(name, number, text, bytes) \
  if (type == text) return number;
  KILN_ELEMENT_TYPES(KILN_X)
#undef KILN_X
  return KILN_TYPE_NONE;
}
#define TYPE(name, text, bits, number, type_class, ...) \
  static_assert(TypeClass::type_class == TypeClass::Other || NumberOf(text) == (number), text);
#include "compiler/hlo/types.def"

// Constant data in the making: structs of kiln.h with the addresses of others and of functions in them.
class Image {
 public:
  size_t Put(const void* data, size_t bytes) {
    bytes_.resize((bytes_.size() + 7) / 8 * 8, '\0');
    const size_t at = bytes_.size();
    bytes_.append(static_cast<const char*>(data), bytes);
    return at;
  }
  template <typename T>
  size_t Put(const std::vector<T>& list) {
    return Put(list.data(), list.size() * sizeof(T));
  }
  size_t Put(const std::string& text) {
    const size_t at = bytes_.size();
    bytes_.append(text.c_str(), text.size() + 1);
    return at;
  }
  // Room for `count` structs.
  template <typename T>
  size_t Reserve(size_t count) {
    return Put(std::vector<T>(count, T{}));
  }
  template <typename T>
  void Set(size_t at, const T& value) {
    std::memcpy(&bytes_[at], &value, sizeof value);
  }
  void Point(size_t at, size_t to) { addresses_.push_back({at, "", to}); }
  void Point(size_t at, const std::string& symbol) { addresses_.push_back({at, symbol}); }
  // Texts, then NULL.
  size_t PutTexts(const std::vector<std::string>& texts) {
    const size_t table = Put(std::vector<uint64_t>(texts.size() + 1, 0));
    for (size_t k = 0; k < texts.size(); ++k) Point(table + k * sizeof(uint64_t), Put(texts[k]));
    return table;
  }
  absl::StatusOr<std::string> Object(const std::string& symbol) const {
    return ConstantObject(symbol, bytes_, addresses_);
  }

 private:
  std::string bytes_;
  std::vector<DataAddress> addresses_;
};

// Puts numbers where byte `at` is to point.
void PointToNumbers(size_t at, const Ints& numbers, Image* image) { image->Point(at, image->Put(numbers)); }

void PointToTiling(size_t at, const PortTiling& t, Image* image) {
  kiln_tiling tiling = {};
  tiling.partitions = static_cast<int64_t>(t.tile_of_partition.size());
  const size_t place = image->Put(&tiling, sizeof tiling);
  PointToNumbers(place + offsetof(kiln_tiling, whole_extents), t.whole.dims(), image);
  PointToNumbers(place + offsetof(kiln_tiling, tiles), t.tiles, image);
  PointToNumbers(place + offsetof(kiln_tiling, tile_of_partition), t.tile_of_partition, image);
  image->Point(at, place);
}

// `stated` has the names and alignments, which are one for all batch sizes.
void PointToArrays(size_t at, const std::vector<Port>& ports, const std::vector<Port>& stated, Image* image) {
  const size_t table = image->Reserve<kiln_array>(ports.size());
  for (size_t k = 0; k < ports.size(); ++k) {
    const Port& p = ports[k];
    const size_t place = table + k * sizeof(kiln_array);
    kiln_array array = {};
    array.type = InfoOf(p.shape.type()).proto;
    array.rank = static_cast<int32_t>(p.shape.rank());
    array.element_bytes = ByteWidth(p.shape.type());
    array.bytes = p.shape.ByteSize();
    array.alignment = stated[k].alignment;
    array.alias = p.alias;
    array.low = p.low;
    array.high = p.high;
    array.weight = stated[k].weight;
    image->Set(place, array);
    const size_t name = image->Put(stated[k].name);
    image->Point(place + offsetof(kiln_array, name), name);
    const Port& named = stated[k];
    image->Point(place + offsetof(kiln_array, path), named.path == named.name ? name : image->Put(named.path));
    PointToNumbers(place + offsetof(kiln_array, extents), p.shape.dims(), image);
    if (!p.shape.HasDefaultLayout())
      PointToNumbers(place + offsetof(kiln_array, minor_to_major), p.shape.layout()->minor_to_major, image);
    if (p.tiling) PointToTiling(place + offsetof(kiln_array, tiling), *p.tiling, image);
  }
  image->Point(at, table);
}

void PointToVariants(size_t at, const CompiledModel& m, Image* image) {
  std::vector<BatchPorts> one;
  if (m.ports.batches.empty()) one.push_back({0, m.ports.arguments, m.ports.results, m.report.temp_bytes});
  const std::vector<BatchPorts>& variants = m.ports.batches.empty() ? one : m.ports.batches;
  const size_t table = image->Reserve<kiln_variant>(variants.size());
  for (size_t k = 0; k < variants.size(); ++k) {
    const size_t place = table + k * sizeof(kiln_variant);
    kiln_variant v = {};
    v.batch = variants[k].batch;
    v.arena_bytes = variants[k].temp_bytes;
    image->Set(place, v);
    PointToArrays(place + offsetof(kiln_variant, arguments), variants[k].arguments, m.ports.arguments, image);
    PointToArrays(place + offsetof(kiln_variant, results), variants[k].results, m.ports.results, image);
  }
  image->Point(at, table);
}

void PointToWorld(size_t at, const CompiledModel& m, Image* image) {
  kiln_world_functions world = {};
  world.struct_bytes = sizeof world;
  const size_t place = image->Put(&world, sizeof world);
#define FUNCTION(name) image->Point(place + offsetof(kiln_world_functions, name), SharedSymbolOf(m, "world_" #name));
  FUNCTION(create)
  FUNCTION(comm)
  FUNCTION(set_timeout)
  FUNCTION(abort)
  FUNCTION(reset)
  FUNCTION(destroy)
#undef FUNCTION
  image->Point(at, place);
}

void PointToMpi(size_t at, const CompiledModel& m, Image* image) {
  kiln_mpi_functions mpi = {};
  mpi.struct_bytes = sizeof mpi;
  const size_t place = image->Put(&mpi, sizeof mpi);
#define FUNCTION(name) image->Point(place + offsetof(kiln_mpi_functions, name), SharedSymbolOf(m, "mpi_" #name));
  FUNCTION(open)
  FUNCTION(comm)
  FUNCTION(error)
  FUNCTION(set_timeout)
  FUNCTION(connect)
  FUNCTION(abort)
  FUNCTION(close)
#undef FUNCTION
  image->Point(at, place);
}

void PointToGpu(size_t at, const CompiledModel& m, Image* image) {
  kiln_gpu_functions gpu = {};
  gpu.struct_bytes = sizeof gpu;
  const size_t place = image->Put(&gpu, sizeof gpu);
  image->Point(place + offsetof(kiln_gpu_functions, create), SymbolOf(m, "gpu_create"));
#define FUNCTION(name) image->Point(place + offsetof(kiln_gpu_functions, name), SharedSymbolOf(m, "gpu_" #name));
  FUNCTION(destroy)
  FUNCTION(run)
  FUNCTION(wait)
  FUNCTION(run_host)
  FUNCTION(malloc)
  FUNCTION(free)
  FUNCTION(to_device)
  FUNCTION(to_host)
  FUNCTION(upload)
  FUNCTION(download)
  FUNCTION(malloc_host)
  FUNCTION(free_host)
  FUNCTION(set_graphs)
  FUNCTION(error)
  FUNCTION(image)
  FUNCTION(report)
  if (m.communicates) FUNCTION(set_comm)
#undef FUNCTION
  image->Point(at, place);
}

void PointToWeights(size_t at, const CompiledModel& m, Image* image) {
  kiln_weights_functions weights = {};
  weights.struct_bytes = sizeof weights;
  const size_t place = image->Put(&weights, sizeof weights);
#define FUNCTION(name, symbol) image->Point(place + offsetof(kiln_weights_functions, name), SharedSymbolOf(m, symbol));
  FUNCTION(open, "weights_open")
  FUNCTION(open_memory, "weights_open_memory")
  FUNCTION(open_source, "weights_open_source")
  FUNCTION(verify, "weights_verify")
  FUNCTION(swap, "weights_swap")
  FUNCTION(close, "weights_close")
#undef FUNCTION
  image->Point(place + offsetof(kiln_weights_functions, run), SymbolOf(m, "run_weights"));
  image->Point(at, place);
}

kiln_model FiguresOf(const CompiledModel& m) {
  kiln_model out = {};
  // A model has no fields that it does not need, so that it is the same with every kiln that knows them.
  const bool entry = !m.entry.empty(), host = m.report.gpu_host_bytes > 0;
  out.struct_bytes = host             ? sizeof(kiln_model)
                     : m.communicates ? offsetof(kiln_model, gpu_host_arena_bytes)
                     : entry          ? offsetof(kiln_model, mpi)
                                      : offsetof(kiln_model, library);
  out.version = host ? KILN_MODEL_VERSION : m.communicates ? 3 : entry ? 2 : 1;
  out.abi_version = KILN_ABI_VERSION;
  out.variant_bytes = sizeof(kiln_variant);
  out.array_bytes = sizeof(kiln_array);
  out.arena_alignment = KILN_ARENA_ALIGNMENT;
  out.arguments = static_cast<int64_t>(m.ports.arguments.size());
  out.results = static_cast<int64_t>(m.ports.results.size());
  out.variants = static_cast<int64_t>(std::max<size_t>(m.ports.batches.size(), 1));
  out.arena_bytes = m.report.temp_bytes;
  out.slow_arena_bytes = m.report.slow_bytes;
  out.gpu_arena_bytes = m.report.gpu_temp_bytes;
  out.gpu_host_arena_bytes = m.report.gpu_host_bytes;
  out.constant_bytes = m.report.constant_bytes;
  out.stack_bytes = kStackBytes;
  out.threads = m.threads;
  out.devices = m.devices;
  out.communicates = m.communicates;
  return out;
}

// Best last.
std::vector<std::string> LevelsInOrder(std::vector<std::string> levels) {
  const auto rank = [](const std::string& level) { return level == "amx" ? "v5" : level; };
  std::sort(levels.begin(), levels.end(), [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  return levels;
}

}  // namespace

absl::StatusOr<std::string> ModelObject(const CompiledModel& m) {
  Image image;
  const kiln_model figures = FiguresOf(m);
  image.Put(&figures, figures.struct_bytes);
#define AT(field) offsetof(kiln_model, field)
  image.Point(AT(name), image.Put(m.name));
  image.Point(AT(kiln_version), image.Put(std::string(kKilnVersion)));
  image.Point(AT(build), image.Put(m.symbols));
  if (!m.entry.empty()) {
    image.Point(AT(library), image.Put(m.library));
    image.Point(AT(entry), image.Put(m.entry));
  }
  PointToVariants(AT(variant), m, &image);
  image.Point(AT(cpu_levels), image.PutTexts(LevelsInOrder(m.code.cpu_levels)));
  image.Point(AT(gpu_targets), image.PutTexts(m.code.gpu_targets));
  std::vector<std::string> callbacks;
  for (const CustomCallSignature& c : m.custom_calls) callbacks.push_back(c.target);
  image.Point(AT(callbacks), image.PutTexts(callbacks));
  if (m.on_cpu) image.Point(AT(run), SymbolOf(m, "run"));
  image.Point(AT(status_text), SymbolOf(m, "status_text"));
  image.Point(AT(cpu_level), SymbolOf(m, "cpu_level"));
  if (m.on_cpu && m.threads != 1) {
    image.Point(AT(pool_create), SharedSymbolOf(m, "pool_create"));
    image.Point(AT(pool_destroy), SharedSymbolOf(m, "pool_destroy"));
  }
  if (m.communicates) {
    PointToWorld(AT(world), m, &image);
    PointToMpi(AT(mpi), m, &image);
  }
  if (!m.code.gpu_targets.empty()) PointToGpu(AT(gpu), m, &image);
  if (HasWeights(m)) PointToWeights(AT(weights), m, &image);
#undef AT
  return image.Object(SymbolOf(m, "descriptor"));
}

absl::StatusOr<std::string> ModelListObject(const std::string& symbol, const std::vector<std::string>& descriptors) {
  Image image;
  const kiln_model_list list = {sizeof(kiln_model_list), static_cast<uint32_t>(descriptors.size()), nullptr};
  image.Put(&list, sizeof list);
  const size_t table = image.Put(std::vector<uint64_t>(descriptors.size(), 0));
  for (size_t k = 0; k < descriptors.size(); ++k) image.Point(table + k * sizeof(uint64_t), descriptors[k]);
  image.Point(offsetof(kiln_model_list, models), table);
  return image.Object(symbol);
}

}  // namespace kiln
