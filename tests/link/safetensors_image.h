// Safetensors files of arrays of f32, as tests write them.
#ifndef KILN_TESTS_LINK_SAFETENSORS_IMAGE_H_
#define KILN_TESTS_LINK_SAFETENSORS_IMAGE_H_

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gtest/gtest.h"

struct Entry {
  std::string name, dtype, shape;
  std::vector<float> values;
};

inline std::string Image(const std::vector<Entry>& entries) {
  std::string json = R"({"__metadata__":{"made":"by a test","n":"[{\"}"})", data;
  for (const Entry& e : entries) {
    const size_t end = data.size() + e.values.size() * sizeof(float);
    json += ",\n \"" + e.name + R"(" : {"dtype":")" + e.dtype + R"(","shape":[)" + e.shape + R"(],"data_offsets":[)" +
            std::to_string(data.size()) + "," + std::to_string(end) + "]}";
    data.append(reinterpret_cast<const char*>(e.values.data()), e.values.size() * sizeof(float));
  }
  json += "}";
  json.resize((json.size() + 7) / 8 * 8, ' ');
  const uint64_t length = json.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + json + data;
}

inline std::string Write(const char* name, const std::string& bytes) {
  const std::string path = testing::TempDir() + "/" + name;
  FILE* f = std::fopen(path.c_str(), "wb");
  std::fwrite(bytes.data(), 1, bytes.size(), f);
  std::fclose(f);
  return path;
}

#endif  // KILN_TESTS_LINK_SAFETENSORS_IMAGE_H_
