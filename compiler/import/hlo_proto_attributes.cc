// Attributes: each field of an instruction as its attribute in HLO text.
#include <algorithm>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "compiler/import/hlo_proto_reader.h"

namespace kiln {
namespace {

using proto::HloInstructionProto;

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

}  // namespace

std::string FrontendText(const proto::FrontendAttributes& a) {
  const std::map<std::string, std::string> sorted(a.map().begin(), a.map().end());
  return absl::StrCat(
      "{",
      absl::StrJoin(sorted, ",",
                    [](std::string* out, const auto& e) { absl::StrAppend(out, e.first, "=", QuoteHlo(e.second)); }),
      "}");
}

absl::Status ProtoReader::ReadAttributes(const HloInstructionProto& p, Instruction* i) {
  Attributes& a = i->mutable_attrs();
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

}  // namespace kiln
