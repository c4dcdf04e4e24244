#include <algorithm>
#include <cstring>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/import/hlo.pb.h"
#include "compiler/import/import.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"

namespace kiln {
namespace {

using proto::HloInstructionProto;

template <typename R>
Ints ToInts(const R& r) {
  return Ints(r.begin(), r.end());
}

// An iota over extents, transposed, as HLO text writes it.
template <typename Dims, typename Order>
std::string IotaText(const Dims& dims, const Order& order) {
  const std::string transposed = order.size() > 1 ? absl::StrCat("T(", absl::StrJoin(order, ","), ")") : "";
  return absl::StrCat("<=[", absl::StrJoin(dims, ","), "]", transposed);
}

// A sharding as HLO text writes it.
std::string ShardingText(const proto::OpSharding& s) {
  const auto word = [](int type) {
    switch (type) {
      case proto::SHARDING_REPLICATED:
        return "replicated";
      case proto::SHARDING_MANUAL:
        return "manual";
      case proto::SHARDING_UNREDUCED:
        return "unreduced";
      default:
        return "unknown";
    }
  };
  if (s.type() == proto::SHARDING_TUPLE)
    return absl::StrCat("{",
                        absl::StrJoin(s.tuple_shardings(), ", ",
                                      [](std::string* out, const auto& e) { absl::StrAppend(out, ShardingText(e)); }),
                        "}");
  if (s.type() == proto::SHARDING_MAXIMAL)
    return absl::StrCat(
        "{maximal device=", s.tile_assignment_devices_size() ? s.tile_assignment_devices(0) : int64_t{0}, "}");
  if (s.type() != proto::SHARDING_OTHER) return absl::StrCat("{", word(s.type()), "}");
  std::string out = absl::StrCat("{devices=[", absl::StrJoin(s.tile_assignment_dimensions(), ","), "]");
  if (s.iota_reshape_dims_size()) {
    out += IotaText(s.iota_reshape_dims(), s.iota_transpose_perm());
  } else {
    absl::StrAppend(&out, absl::StrJoin(s.tile_assignment_devices(), ","));
  }
  if (s.replicate_on_last_tile_dim()) out += " last_tile_dim_replicate";
  if (s.last_tile_dims_size())
    absl::StrAppend(
        &out, " last_tile_dims={",
        absl::StrJoin(s.last_tile_dims(), ", ", [&](std::string* to, int type) { absl::StrAppend(to, word(type)); }),
        "}");
  return out + "}";
}

// In the order of keys: a map of a proto has none.
std::string FrontendText(const proto::FrontendAttributes& a) {
  const std::map<std::string, std::string> sorted(a.map().begin(), a.map().end());
  return absl::StrCat(
      "{",
      absl::StrJoin(sorted, ",",
                    [](std::string* out, const auto& e) { absl::StrAppend(out, e.first, "=", QuoteHlo(e.second)); }),
      "}");
}

class ProtoReader {
 public:
  ProtoReader(const proto::HloModuleProto& p, const std::string& file, const Limits& limits)
      : p_(p), file_(file), limits_(limits) {}

  absl::StatusOr<std::unique_ptr<Module>> Run();

 private:
  absl::Status Fail(absl::string_view where, absl::string_view why) {
    return InvalidArgument(file_, ":0:0: error: ", where, ": ", why);
  }
  absl::StatusOr<Shape> ToShape(const proto::ShapeProto& s, int depth = 0);
  absl::StatusOr<Literal> ToLiteral(const proto::LiteralProto& l, int depth = 0);
  absl::Status ReadComputation(const proto::HloComputationProto& c, Computation* out);
  absl::Status ReadAttributes(const HloInstructionProto& p, Instruction* i);
  absl::Status ReadSchedule();

  const proto::HloModuleProto& p_;
  std::string file_;
  const Limits limits_;
  std::unique_ptr<Module> m_;
  absl::flat_hash_map<int64_t, Computation*> by_id_;
  // By id, of every computation.
  absl::flat_hash_map<const Computation*, absl::flat_hash_map<int64_t, Instruction*>> values_;
};

absl::StatusOr<Shape> ProtoReader::ToShape(const proto::ShapeProto& s, int depth) {
  if (depth > limits_.nesting) return Fail("shape", absl::StrCat("tuples nest deeper than ", limits_.nesting));
  auto type = TypeFromProto(s.element_type());
  if (!type) return Fail("shape", absl::StrCat("unknown element type ", s.element_type()));
  if (*type == PrimitiveType::Tuple) {
    std::vector<Shape> parts;
    for (const auto& t : s.tuple_shapes()) {
      ASSIGN_OR_RETURN(Shape e, ToShape(t, depth + 1));
      parts.push_back(std::move(e));
    }
    return Shape::Tuple(std::move(parts));
  }
  if (*type == PrimitiveType::Buffer) {
    if (s.tuple_shapes_size() != 1) return Fail("shape", "a buffer holds one array");
    ASSIGN_OR_RETURN(Shape array, ToShape(s.tuple_shapes(0), depth + 1));
    Shape buffer = Shape::Tuple({std::move(array)});
    buffer.set_type(PrimitiveType::Buffer);
    return buffer;
  }
  int64_t n = 1;
  for (int64_t d : s.dimensions()) {
    if (d < -1) return Fail("shape", absl::StrCat("negative extent ", d));
    if (d > 0 && n > limits_.elements / d)
      return Fail("shape", absl::StrCat("more than ", limits_.elements, " elements"));
    n *= std::max<int64_t>(d, 1);
  }
  Shape out = Shape::Array(*type, ToInts(s.dimensions()));
  for (int d = 0; d < s.is_dynamic_dimension_size() && d < out.rank(); ++d)
    out.set_dynamic(d, s.is_dynamic_dimension(d));
  if (s.has_layout() && s.layout().minor_to_major_size() == out.rank()) {
    Layout l;
    l.minor_to_major = ToInts(s.layout().minor_to_major());
    std::vector<bool> seen(out.rank(), false);
    for (int64_t d : l.minor_to_major) {
      if (d < 0 || d >= out.rank() || seen[d]) return Fail("layout", "minor_to_major is no permutation");
      seen[d] = true;
    }
    for (const auto& t : s.layout().tiles())
      absl::StrAppend(&l.extras, l.extras.empty() ? "T(" : "(", absl::StrJoin(t.dimensions(), ","), ")");
    if (s.layout().element_size_in_bits()) absl::StrAppend(&l.extras, "E(", s.layout().element_size_in_bits(), ")");
    if (s.layout().memory_space()) absl::StrAppend(&l.extras, "S(", s.layout().memory_space(), ")");
    if (out.rank() > 0 || !l.extras.empty()) out.set_layout(std::move(l));  // as text has it
  }
  return out;
}

absl::StatusOr<Literal> ProtoReader::ToLiteral(const proto::LiteralProto& p, int depth) {
  if (depth > 100) return Fail("literal", "tuples nest deeper than 100");
  ASSIGN_OR_RETURN(Shape shape, ToShape(p.shape()));
  if (shape.IsTuple()) {
    std::vector<Literal> parts;
    for (const auto& t : p.tuple_literals()) {
      ASSIGN_OR_RETURN(Literal e, ToLiteral(t, depth + 1));
      parts.push_back(std::move(e));
    }
    return Literal::Tuple(std::move(parts));
  }
  if (!shape.IsArray()) return Fail("literal", "not an array");
  const int64_t n = shape.ElementCount();
  // Elements come in the layout's order; ours are row major.
  const std::optional<Layout> layout = shape.layout();
  const PrimitiveType t = shape.type();
  std::string bytes;
  auto take = [&](const auto& field) {
    using E = std::decay_t<decltype(field[0])>;
    bytes.assign(reinterpret_cast<const char*>(field.data()), field.size() * sizeof(E));
  };
  switch (t) {
    case PrimitiveType::Pred:
      for (bool b : p.preds()) bytes += static_cast<char>(b);
      break;
    case PrimitiveType::S32:
      take(p.s32s());
      break;
    case PrimitiveType::S64:
      take(p.s64s());
      break;
    case PrimitiveType::U32:
      take(p.u32s());
      break;
    case PrimitiveType::U64:
      take(p.u64s());
      break;
    case PrimitiveType::F32:
      take(p.f32s());
      break;
    case PrimitiveType::F64:
      take(p.f64s());
      break;
    case PrimitiveType::C64:
      take(p.c64s());
      break;
    case PrimitiveType::C128:
      take(p.c128s());
      break;
    case PrimitiveType::S8:
      bytes = p.s8s();
      break;
    case PrimitiveType::U8:
      bytes = p.u8s();
      break;
    case PrimitiveType::S16:
      bytes = p.s16s();
      break;
    case PrimitiveType::U16:
      bytes = p.u16s();
      break;
    case PrimitiveType::F16:
      bytes = p.f16s();
      break;
    case PrimitiveType::BF16:
      bytes = p.bf16s();
      break;
    case PrimitiveType::F8E5M2:
      bytes = p.f8e5m2s();
      break;
    case PrimitiveType::F8E4M3FN:
      bytes = p.f8e4m3fns();
      break;
    case PrimitiveType::F8E4M3B11FNUZ:
      bytes = p.f8e4m3b11fnuzs();
      break;
    case PrimitiveType::F8E5M2FNUZ:
      bytes = p.f8e5m2fnuzs();
      break;
    case PrimitiveType::F8E4M3FNUZ:
      bytes = p.f8e4m3fnuzs();
      break;
    case PrimitiveType::F8E4M3:
      bytes = p.f8e4m3s();
      break;
    case PrimitiveType::F8E3M4:
      bytes = p.f8e3m4s();
      break;
    case PrimitiveType::S4:
    case PrimitiveType::U4: {  // packed, low nibble first
      const std::string& q = t == PrimitiveType::S4 ? p.s4s() : p.u4s();
      for (int64_t k = 0; k < n && k / 2 < static_cast<int64_t>(q.size()); ++k)
        bytes += static_cast<char>((q[k / 2] >> (k % 2 * 4)) & 15);
      break;
    }
    default:
      return Fail("literal", absl::StrCat("constants of ", TextOf(t), " are not supported in protos"));
  }
  if (static_cast<int64_t>(bytes.size()) != shape.ByteSize())
    return Fail("literal", absl::StrCat(bytes.size(), " bytes for ", shape.ToString(false)));
  Literal l(shape);
  shape.set_layout(layout);
  if (shape.HasDefaultLayout()) {
    if (n) std::memcpy(l.mutable_data(), bytes.data(), bytes.size());
    return l;
  }
  const Ints strides = shape.Strides();
  const int64_t w = ByteWidth(t);
  Ints index(shape.rank(), 0);
  for (int64_t k = 0; k < n; ++k) {
    int64_t from = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) from += index[d] * strides[d];
    std::memcpy(l.mutable_data() + k * w, bytes.data() + from * w, w);
    for (int64_t d = shape.rank() - 1; d >= 0 && ++index[d] == shape.dim(d); --d) index[d] = 0;
  }
  return l;
}

absl::Status ProtoReader::ReadAttributes(const HloInstructionProto& p, Instruction* i) {
  Attributes& a = i->attrs();
  const Opcode op = i->opcode();
  std::vector<Computation*> called;
  for (int64_t id : p.called_computation_ids()) {
    auto it = by_id_.find(id);
    if (it == by_id_.end()) return Fail(p.name(), absl::StrCat("calls computation ", id, ", which the module lacks"));
    called.push_back(it->second);
  }
  auto need_called = [&](size_t n) -> absl::Status {
    return called.size() >= n ? absl::OkStatus()
                              : Fail(p.name(), absl::StrCat(p.opcode(), " needs ", n, " called computations"));
  };
  switch (op) {
    case Opcode::While:
      RETURN_IF_ERROR(need_called(2));
      a.body = called[0];
      a.condition = called[1];
      break;
    case Opcode::Conditional:
      if (i->operand_count() && i->operand(0)->shape().type() == PrimitiveType::Pred && called.size() == 2) {
        a.true_computation = called[0];
        a.false_computation = called[1];
      } else {
        a.branch_computations = called;
      }
      break;
    case Opcode::SelectAndScatter:
      RETURN_IF_ERROR(need_called(2));
      a.select = called[0];
      a.scatter = called[1];
      break;
    case Opcode::Fusion:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone:
      if (!called.empty()) a.calls = called[0];
      break;
    case Opcode::CustomCall:
      if (!called.empty()) a.called_computations = called;
      break;
    default:
      if (!called.empty()) a.to_apply = called[0];
  }
  switch (op) {
    case Opcode::GetTupleElement:
      a.tuple_index = p.tuple_index();
      break;
    case Opcode::Iota:
      a.iota_dimension = p.dimensions_size() ? p.dimensions(0) : 0;
      break;
    case Opcode::Broadcast:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Concatenate:
    case Opcode::Reduce:
    case Opcode::Sort:
    case Opcode::Map:
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize:
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::ReduceScatter:
      a.dimensions = ToInts(p.dimensions());
      break;
    case Opcode::AllToAll:
      if (p.dimensions_size()) a.dimensions = ToInts(p.dimensions());
      break;
    case Opcode::DynamicSlice:
      a.dynamic_slice_sizes = ToInts(p.dynamic_slice_sizes());
      break;
    case Opcode::Fusion:
      a.fusion_kind = attr::Raw(p.fusion_kind());
      break;
    case Opcode::ReducePrecision:
      a.exponent_bits = p.exponent_bits();
      a.mantissa_bits = p.mantissa_bits();
      break;
    case Opcode::Compare:
      a.direction = attr::Raw(p.comparison_direction());
      if (p.comparison_type() == "TOTALORDER") a.compare_type = "TOTALORDER";
      break;
    case Opcode::Rng:
      a.distribution = p.distribution() == 2 ? "rng_normal" : "rng_uniform";
      break;
    case Opcode::RngBitGenerator:
      a.algorithm = p.rng_algorithm() == 1 ? "rng_three_fry" : p.rng_algorithm() == 2 ? "rng_philox" : "rng_default";
      break;
    case Opcode::RngGetAndUpdateState:
      a.delta = p.delta();
      break;
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining:
      a.epsilon = p.epsilon();
      a.feature_index = p.feature_index();
      break;
    case Opcode::Fft: {
      static const char* const kNames[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
      if (p.fft_type() < 0 || p.fft_type() > 3) return Fail(p.name(), "unknown fft_type");
      a.fft_type = kNames[p.fft_type()];
      a.fft_length = ToInts(p.fft_length());
      break;
    }
    case Opcode::TriangularSolve: {
      static const char* const kNames[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
      const auto& t = p.triangular_solve_options();
      if (t.transpose_a() < 0 || t.transpose_a() > 3) return Fail(p.name(), "unknown transpose_a");
      if (t.left_side()) a.left_side = true;
      if (t.lower()) a.lower = true;
      if (t.unit_diagonal()) a.unit_diagonal = true;
      a.transpose_a = kNames[t.transpose_a()];
      break;
    }
    case Opcode::Cholesky:
      if (p.cholesky_options().lower()) a.lower = true;
      break;
    case Opcode::CustomCall: {
      a.custom_call_target = attr::Str(p.custom_call_target());
      if (p.custom_call_has_side_effect()) a.custom_call_has_side_effect = true;
      static const char* const kNames[] = {"", "", "API_VERSION_STATUS_RETURNING",
                                           "API_VERSION_STATUS_RETURNING_UNIFIED", "API_VERSION_TYPED_FFI"};
      if (p.custom_call_api_version() >= 2 && p.custom_call_api_version() <= 4)
        a.api_version = kNames[p.custom_call_api_version()];
      static const char* const kSchedules[] = {"", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
      if (p.custom_call_schedule() == 1 || p.custom_call_schedule() == 2)
        a.schedule = attr::Raw(kSchedules[p.custom_call_schedule()]);
      if (p.constrain_layout()) {
        std::vector<std::string> shapes;
        for (const auto& s : p.operand_shapes_with_layout()) {
          ASSIGN_OR_RETURN(const Shape shape, ToShape(s));
          shapes.push_back(shape.ToString());
        }
        a.operand_layout_constraints = attr::Raw(absl::StrCat("{", absl::StrJoin(shapes, ", "), "}"));
      }
      break;
    }
    case Opcode::TopK:
      a.k = p.k();
      a.largest = p.largest();
      break;
    case Opcode::Infeed:
      a.infeed_config = attr::Str(p.infeed_config());
      break;
    case Opcode::Outfeed: {
      a.outfeed_config = attr::Str(p.outfeed_config());
      if (p.has_outfeed_shape()) {
        ASSIGN_OR_RETURN(a.outfeed_shape, ToShape(p.outfeed_shape()));
      }
      break;
    }
    default:
      break;
  }
  if (p.has_window()) {
    attr::Win w;
    for (const auto& d : p.window().dimensions())
      w.push_back({d.size(), d.stride() ? d.stride() : 1, d.padding_low(), d.padding_high(),
                   d.base_dilation() ? d.base_dilation() : 1, d.window_dilation() ? d.window_dilation() : 1,
                   d.window_reversal()});
    a.window = std::move(w);
  }
  if (p.has_convolution_dimension_numbers()) {
    const auto& d = p.convolution_dimension_numbers();
    ConvDimensionNumbers n;
    n.input_batch = d.input_batch_dimension();
    n.input_feature = d.input_feature_dimension();
    n.input_spatial = ToInts(d.input_spatial_dimensions());
    n.kernel_input = d.kernel_input_feature_dimension();
    n.kernel_output = d.kernel_output_feature_dimension();
    n.kernel_spatial = ToInts(d.kernel_spatial_dimensions());
    n.output_batch = d.output_batch_dimension();
    n.output_feature = d.output_feature_dimension();
    n.output_spatial = ToInts(d.output_spatial_dimensions());
    const int64_t rank = static_cast<int64_t>(n.input_spatial.size()) + 2;
    auto complete = [&](int64_t x, int64_t y, const Ints& s) {
      std::vector<bool> seen(rank, false);
      Ints all = s;
      all.push_back(x);
      all.push_back(y);
      for (int64_t v : all) {
        if (v < 0 || v >= rank || seen[v]) return false;
        seen[v] = true;
      }
      return static_cast<int64_t>(all.size()) == rank;
    };
    if (!complete(n.input_batch, n.input_feature, n.input_spatial) ||
        !complete(n.kernel_input, n.kernel_output, n.kernel_spatial) ||
        !complete(n.output_batch, n.output_feature, n.output_spatial))
      return Fail(p.name(), "convolution dimension numbers are no permutation");
    a.dim_labels = n;
  }
  if (p.feature_group_count() > 1) a.feature_group_count = p.feature_group_count();
  if (p.batch_group_count() > 1) a.batch_group_count = p.batch_group_count();
  if (op == Opcode::Slice) {
    attr::Slices s;
    for (const auto& d : p.slice_dimensions()) s.push_back({d.start(), d.limit(), d.stride() ? d.stride() : 1});
    a.slice = std::move(s);
  }
  if (op == Opcode::Pad) {
    attr::Padding pad;
    for (const auto& d : p.padding_config().dimensions())
      pad.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
    a.padding = std::move(pad);
  }
  if (p.has_ragged_dot_dimension_numbers()) {
    a.lhs_ragged_dims = ToInts(p.ragged_dot_dimension_numbers().lhs_ragged_dimensions());
    if (p.ragged_dot_dimension_numbers().rhs_group_dimensions_size())
      a.rhs_group_dims = ToInts(p.ragged_dot_dimension_numbers().rhs_group_dimensions());
  }
  if (p.has_dot_dimension_numbers() || p.has_ragged_dot_dimension_numbers() || op == Opcode::Dot) {
    const auto& d = p.has_ragged_dot_dimension_numbers() ? p.ragged_dot_dimension_numbers().dot_dimension_numbers()
                                                         : p.dot_dimension_numbers();
    a.lhs_contracting_dims = ToInts(d.lhs_contracting_dimensions());
    a.rhs_contracting_dims = ToInts(d.rhs_contracting_dimensions());
    if (d.lhs_batch_dimensions_size()) {
      a.lhs_batch_dims = ToInts(d.lhs_batch_dimensions());
      a.rhs_batch_dims = ToInts(d.rhs_batch_dimensions());
    }
  }
  if (op == Opcode::Gather) {
    const auto& d = p.gather_dimension_numbers();
    a.offset_dims = ToInts(d.offset_dims());
    a.collapsed_slice_dims = ToInts(d.collapsed_slice_dims());
    a.start_index_map = ToInts(d.start_index_map());
    if (d.operand_batching_dims_size()) {
      a.operand_batching_dims = ToInts(d.operand_batching_dims());
      a.start_indices_batching_dims = ToInts(d.start_indices_batching_dims());
    }
    a.index_vector_dim = d.index_vector_dim();
    a.slice_sizes = ToInts(p.gather_slice_sizes());
    if (p.indices_are_sorted()) a.indices_are_sorted = true;
  }
  if (op == Opcode::Scatter) {
    const auto& d = p.scatter_dimension_numbers();
    a.update_window_dims = ToInts(d.update_window_dims());
    a.inserted_window_dims = ToInts(d.inserted_window_dims());
    a.scatter_dims_to_operand_dims = ToInts(d.scatter_dims_to_operand_dims());
    if (d.input_batching_dims_size()) {
      a.input_batching_dims = ToInts(d.input_batching_dims());
      a.scatter_indices_batching_dims = ToInts(d.scatter_indices_batching_dims());
    }
    a.index_vector_dim = d.index_vector_dim();
    if (p.indices_are_sorted()) a.indices_are_sorted = true;
    if (p.unique_indices()) a.unique_indices = true;
  }
  if (p.is_stable()) a.is_stable = true;
  if (p.channel_id()) a.channel_id = p.channel_id();
  if (p.use_global_device_ids()) a.use_global_device_ids = true;
  if (p.is_host_transfer()) a.is_host_transfer = true;
  // Newer files have a list of its own for them.
  const auto& list = p.collective_device_list();
  const auto& groups = list.replica_groups_size() ? list.replica_groups() : p.replica_groups();
  if (list.has_iota_replica_group_list()) {
    const auto& iota = list.iota_replica_group_list();
    a.replica_groups = attr::Raw(absl::StrCat("[", iota.num_replica_groups(), ",", iota.num_devices_per_group(), "]",
                                              IotaText(iota.iota_reshape_dims(), iota.iota_transpose_perm())));
  } else if (!groups.empty()) {
    std::string t = "{";
    for (const auto& g : groups)
      absl::StrAppend(&t, t.size() > 1 ? "," : "", "{", absl::StrJoin(g.replica_ids(), ","), "}");
    a.replica_groups = attr::Raw(t + "}");
  }
  if (p.source_target_pairs_size()) {
    std::string t = "{";
    for (const auto& g : p.source_target_pairs())
      absl::StrAppend(&t, t.size() > 1 ? "," : "", "{", g.source(), ",", g.target(), "}");
    a.source_target_pairs = attr::Raw(t + "}");
  }
  if (p.has_sharding()) a.sharding = attr::Raw(ShardingText(p.sharding()));
  if (p.frontend_attributes().map_size()) a.frontend_attributes = attr::Raw(FrontendText(p.frontend_attributes()));
  if (!p.async_execution_thread().empty()) a.async_execution_thread = attr::Str(p.async_execution_thread());
  if (p.output_operand_aliasing_size()) {
    std::vector<std::string> pairs;
    for (const auto& e : p.output_operand_aliasing())
      pairs.push_back(absl::StrCat(AttrText(ToInts(e.output_shape_index())), ": (", e.operand_index(), ", ",
                                   AttrText(ToInts(e.operand_shape_index())), ")"));
    a.output_to_operand_aliasing = attr::Raw(absl::StrCat("{", absl::StrJoin(pairs, ", "), "}"));
  }
  if (p.is_composite()) a.is_composite = true;
  if (!p.backend_config().empty())
    a.backend_config = attr::Raw(p.backend_config()[0] == '{' ? p.backend_config() : QuoteHlo(p.backend_config()));
  if (p.has_metadata() && !(p.metadata().op_name().empty() && p.metadata().source_file().empty())) {
    std::string t = "{";
    auto put = [&](const char* k, const std::string& v) {
      if (!v.empty()) absl::StrAppend(&t, t.size() > 1 ? " " : "", k, "=", QuoteHlo(v));
    };
    put("op_type", p.metadata().op_type());
    put("op_name", p.metadata().op_name());
    put("source_file", p.metadata().source_file());
    if (p.metadata().source_line()) absl::StrAppend(&t, " source_line=", p.metadata().source_line());
    a.metadata = attr::Raw(t + "}");
  }
  return absl::OkStatus();
}

absl::Status ProtoReader::ReadComputation(const proto::HloComputationProto& c, Computation* out) {
  absl::flat_hash_map<int64_t, Instruction*>& values = values_[out];
  std::vector<std::pair<Instruction*, const HloInstructionProto*>> later;
  for (const HloInstructionProto& p : c.instructions()) {
    auto op = OpcodeFromText(p.opcode());
    if (!op) return Fail(p.name(), absl::StrCat("unknown opcode '", p.opcode(), "'"));
    ASSIGN_OR_RETURN(Shape shape, ToShape(p.shape()));
    std::vector<Instruction*> operands;
    for (int64_t id : p.operand_ids()) {
      auto it = values.find(id);
      if (it == values.end()) return Fail(p.name(), absl::StrCat("operand ", id, " is not defined before it"));
      operands.push_back(it->second);
    }
    const OpcodeInfo& info = InfoOf(*op);
    if (info.arity >= 0 && static_cast<int>(operands.size()) != info.arity)
      return Fail(p.name(), absl::StrCat(p.opcode(), " takes ", info.arity, " operands, not ", operands.size()));
    Instruction* i;
    if (*op == Opcode::Parameter) {
      const int64_t n = p.parameter_number();
      if (n < 0 || n >= c.instructions_size() ||
          (n < static_cast<int64_t>(out->parameters().size()) && out->parameters()[n]))
        return Fail(p.name(), "bad parameter number");
      i = out->AddParameter(n, shape, p.name());
    } else {
      i = out->Add(*op, shape, operands, p.name());
    }
    if (*op == Opcode::Constant) {
      ASSIGN_OR_RETURN(Literal l, ToLiteral(p.literal()));
      if (!l.shape().Compatible(shape)) return Fail(p.name(), "literal and shape differ");
      i->set_literal(std::move(l));
    }
    RETURN_IF_ERROR(ReadAttributes(p, i));
    if (!values.insert({p.id(), i}).second) return Fail(p.name(), absl::StrCat("id ", p.id(), " is used twice"));
    later.push_back({i, &p});
  }
  for (auto& [i, p] : later)
    for (int64_t id : p->control_predecessor_ids()) {
      auto it = values.find(id);
      if (it == values.end()) return Fail(p->name(), "control predecessor is not defined");
      it->second->AddControlDependencyTo(i);
    }
  for (Instruction* p : out->parameters())
    if (!p) return Fail(c.name(), "parameters are not contiguous");
  auto root = values.find(c.root_id());
  if (root == values.end()) return Fail(c.name(), "root is not defined");
  out->set_root(root->second);
  out->set_execution_thread(c.execution_thread() == "main" ? "" : c.execution_thread());
  return absl::OkStatus();
}

// A list of all instructions for each computation that runs step by step.
absl::Status ProtoReader::ReadSchedule() {
  for (const auto& [id, sequence] : p_.schedule().sequences()) {
    const auto c = by_id_.find(id);
    if (c == by_id_.end()) return Fail("schedule", absl::StrCat("computation ", id, " is not defined"));
    std::vector<Instruction*> order;
    absl::flat_hash_set<const Instruction*> seen;
    for (int64_t at : sequence.instruction_ids()) {
      const auto i = values_[c->second].find(at);
      if (i == values_[c->second].end() || !seen.insert(i->second).second)
        return Fail("schedule",
                    absl::StrCat("instruction ", at, " is not one of ", c->second->name(), ", or listed twice"));
      order.push_back(i->second);
    }
    if (static_cast<int64_t>(order.size()) != c->second->instruction_count())
      return Fail("schedule", absl::StrCat(c->second->name(), " has instructions that are not listed"));
    c->second->Reorder(order);
  }
  m_->is_scheduled = true;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Module>> ProtoReader::Run() {
  m_ = std::make_unique<Module>(p_.name().empty() ? "module" : p_.name());
  m_->file = file_;
  m_->limits = limits_;
  if (p_.computations_size() == 0) return Fail("module", "has no computation");
  for (const auto& c : p_.computations())
    by_id_[c.id()] = m_->AddComputation(c.name().empty() ? "computation" : c.name());
  if (by_id_.size() != static_cast<size_t>(p_.computations_size())) return Fail("module", "computation ids repeat");
  for (const auto& c : p_.computations()) RETURN_IF_ERROR(ReadComputation(c, by_id_[c.id()]));
  auto entry = by_id_.find(p_.entry_computation_id());
  if (entry == by_id_.end()) return Fail("module", "entry computation is not defined");
  m_->set_entry(entry->second);
  for (const auto& e : p_.input_output_alias().entries()) {
    AliasEntry a;
    a.output = ToInts(e.output_shape_index());
    a.parameter = e.parameter_number();
    a.parameter_index = ToInts(e.parameter_shape_index());
    a.must = e.kind() == 2;
    m_->aliases.push_back(std::move(a));
  }
  for (const auto& e : p_.buffer_donor().entries())
    m_->buffer_donors.push_back({e.parameter_number(), ToInts(e.parameter_shape_index())});
  if (p_.has_schedule() && p_.schedule().sequences_size()) RETURN_IF_ERROR(ReadSchedule());
  if (p_.frontend_attributes().map_size())
    m_->extra_header.push_back({"frontend_attributes", FrontendText(p_.frontend_attributes())});
  if (p_.has_host_program_shape()) {
    EntryLayout l;
    for (const auto& s : p_.host_program_shape().parameters()) {
      ASSIGN_OR_RETURN(Shape x, ToShape(s));
      l.parameters.push_back(std::move(x));
    }
    ASSIGN_OR_RETURN(l.result, ToShape(p_.host_program_shape().result()));
    m_->entry_layout = std::move(l);
  }
  return std::move(m_);
}

class CollectErrors : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber column, const std::string& message) override {
    if (text.empty()) text = absl::StrCat(line + 1, ":", column + 1, ": error: ", message);
  }
  std::string text;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Module>> ImportHloProto(absl::string_view bytes, const std::string& file,
                                                       const Limits& limits) {
  using google::protobuf::TextFormat;
  const bool text = std::none_of(bytes.begin(), bytes.begin() + std::min<size_t>(bytes.size(), 4096),
                                 [](unsigned char c) { return c < 9 || (c > 13 && c < 32); });
  proto::HloModuleProto module;
  proto::HloProto hlo;
  proto::HloSnapshot snapshot;
  const std::string s(bytes);
  if (text) {
    TextFormat::Parser parser;
    CollectErrors errors;
    parser.RecordErrorsTo(&errors);
    parser.AllowUnknownField(true);
    const bool ok = absl::StrContains(s.substr(0, 4096), "hlo_module")
                        ? (absl::StrContains(s.substr(0, 64), "hlo {") ? parser.ParseFromString(s, &snapshot)
                                                                       : parser.ParseFromString(s, &hlo))
                        : parser.ParseFromString(s, &module);
    if (!ok)
      return InvalidArgument(file, ":",
                             errors.text.empty() ? "1:1: error: not a text proto of an HLO module" : errors.text);
    if (snapshot.has_hlo()) hlo = snapshot.hlo();
    if (hlo.has_hlo_module()) module = hlo.hlo_module();
    return ProtoReader(module, file, limits).Run();
  }
  // Binary: the three messages are told apart by what field 1 parses as.
  auto good = [](const proto::HloModuleProto& m) { return m.computations_size() > 0; };
  if (module.ParseFromString(s) && good(module)) return ProtoReader(module, file, limits).Run();
  if (hlo.ParseFromString(s) && good(hlo.hlo_module())) return ProtoReader(hlo.hlo_module(), file, limits).Run();
  if (snapshot.ParseFromString(s) && good(snapshot.hlo().hlo_module()))
    return ProtoReader(snapshot.hlo().hlo_module(), file, limits).Run();
  return InvalidArgument(file, ":1:1: error: neither HLO text, nor StableHLO, nor an HLO proto");
}

}  // namespace kiln
