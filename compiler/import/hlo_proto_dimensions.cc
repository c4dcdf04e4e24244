// Attributes that name dimensions: windows, and the dimension numbers of products, gathers and scatters.
#include "compiler/import/hlo_proto_reader.h"

namespace kiln {
namespace {

using proto::HloInstructionProto;

void ReadWindow(const HloInstructionProto& p, Attributes& a) {
  attr::Win w;
  for (const auto& d : p.window().dimensions())
    w.push_back({d.size(), d.stride() ? d.stride() : 1, d.padding_low(), d.padding_high(),
                 d.base_dilation() ? d.base_dilation() : 1, d.window_dilation() ? d.window_dilation() : 1,
                 d.window_reversal()});
  a.window = std::move(w);
}

// Whether two dimensions and a list name each of `rank` dimensions once.
bool NamesEach(int64_t rank, int64_t x, int64_t y, const Ints& list) {
  std::vector<bool> seen(rank, false);
  Ints all = list;
  all.push_back(x);
  all.push_back(y);
  for (int64_t v : all) {
    if (v < 0 || v >= rank || seen[v]) return false;
    seen[v] = true;
  }
  return static_cast<int64_t>(all.size()) == rank;
}

// False: they are no permutations.
bool ReadConvolutionDimensions(const HloInstructionProto& p, Attributes& a) {
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
  a.dim_labels = n;
  const int64_t rank = static_cast<int64_t>(n.input_spatial.size()) + 2;
  return NamesEach(rank, n.input_batch, n.input_feature, n.input_spatial) &&
         NamesEach(rank, n.kernel_input, n.kernel_output, n.kernel_spatial) &&
         NamesEach(rank, n.output_batch, n.output_feature, n.output_spatial);
}

void ReadSlice(const HloInstructionProto& p, Attributes& a) {
  attr::Slices s;
  for (const auto& d : p.slice_dimensions()) s.push_back({d.start(), d.limit(), d.stride() ? d.stride() : 1});
  a.slice = std::move(s);
}

void ReadPad(const HloInstructionProto& p, Attributes& a) {
  attr::Padding pad;
  for (const auto& d : p.padding_config().dimensions())
    pad.push_back({d.edge_padding_low(), d.edge_padding_high(), d.interior_padding()});
  a.padding = std::move(pad);
}

void ReadRaggedDotDimensions(const HloInstructionProto& p, Attributes& a) {
  a.lhs_ragged_dims = ToInts(p.ragged_dot_dimension_numbers().lhs_ragged_dimensions());
  if (p.ragged_dot_dimension_numbers().rhs_group_dimensions_size())
    a.rhs_group_dims = ToInts(p.ragged_dot_dimension_numbers().rhs_group_dimensions());
}

void ReadDotDimensions(const HloInstructionProto& p, Attributes& a) {
  const auto& d = p.has_ragged_dot_dimension_numbers() ? p.ragged_dot_dimension_numbers().dot_dimension_numbers()
                                                       : p.dot_dimension_numbers();
  a.lhs_contracting_dims = ToInts(d.lhs_contracting_dimensions());
  a.rhs_contracting_dims = ToInts(d.rhs_contracting_dimensions());
  if (d.lhs_batch_dimensions_size()) {
    a.lhs_batch_dims = ToInts(d.lhs_batch_dimensions());
    a.rhs_batch_dims = ToInts(d.rhs_batch_dimensions());
  }
}

void ReadGather(const HloInstructionProto& p, Attributes& a) {
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

void ReadScatter(const HloInstructionProto& p, Attributes& a) {
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

}  // namespace

absl::Status ProtoReader::ReadDimensionNumbers(const HloInstructionProto& p, Opcode opcode, Attributes& a) {
  if (p.has_window()) ReadWindow(p, a);
  if (p.has_convolution_dimension_numbers() && !ReadConvolutionDimensions(p, a))
    return Fail(p.name(), "convolution dimension numbers are no permutation");
  if (opcode == Opcode::Slice) ReadSlice(p, a);
  if (opcode == Opcode::Pad) ReadPad(p, a);
  if (p.has_ragged_dot_dimension_numbers()) ReadRaggedDotDimensions(p, a);
  if (p.has_dot_dimension_numbers() || p.has_ragged_dot_dimension_numbers() || opcode == Opcode::Dot)
    ReadDotDimensions(p, a);
  if (opcode == Opcode::Gather) ReadGather(p, a);
  if (opcode == Opcode::Scatter) ReadScatter(p, a);
  return absl::OkStatus();
}

}  // namespace kiln
