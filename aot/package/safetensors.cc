#include "aot/package/safetensors.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "aot/package/weights_table.h"
#include "compiler/base/text.h"

namespace kiln {

std::vector<absl::string_view> SafetensorsPieces(const std::vector<WeightConstant>& arrays, std::string* header) {
  // The format has no room between arrays: behind one of wide elements, any is aligned.
  std::vector<const WeightConstant*> order;
  for (const WeightConstant& a : arrays) order.push_back(&a);
  std::stable_sort(order.begin(), order.end(), [](const WeightConstant* a, const WeightConstant* b) {
    return ByteWidth(a->value.type()) > ByteWidth(b->value.type());
  });
  std::string json = "{";
  std::vector<absl::string_view> pieces(1);
  int64_t place = 0;
  for (const WeightConstant* a : order) {
    const int64_t end = place + a->value.byte_size();
    absl::StrAppend(&json, json.size() > 1 ? "," : "", JsonQuote(a->name),
                    ":{\"dtype\":", JsonQuote(SafetensorsType(a->value.type())), ",\"shape\":[",
                    absl::StrJoin(a->value.shape().dims(), ","), "],\"data_offsets\":[", place, ",", end, "]}");
    pieces.emplace_back(reinterpret_cast<const char*>(a->value.data()), static_cast<size_t>(a->value.byte_size()));
    place = end;
  }
  json += "}";
  constexpr size_t kLength = sizeof(uint64_t), kAlignment = 64;
  json.resize((json.size() + kLength + kAlignment - 1) / kAlignment * kAlignment - kLength, ' ');
  uint64_t length = json.size();
  *header = std::string(kLength, '\0') + json;
  std::memcpy(header->data(), &length, kLength);
  pieces[0] = *header;
  return pieces;
}

}  // namespace kiln
