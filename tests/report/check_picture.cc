// check_picture FILE.png WIDTH HEIGHT: the picture has that size and many colours, among them the memory chart's.
#include <zlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <vector>

namespace {

int Fail(const char* why) {
  std::printf("FAILED: %s\n", why);
  return 1;
}

uint32_t Word(const std::string& s, size_t at) {
  uint32_t n = 0;
  for (size_t k = 0; k < 4; ++k) n = n << 8 | static_cast<uint8_t>(s[at + k]);
  return n;
}

int Paeth(int a, int b, int c) {
  const int p = a + b - c, x = std::abs(p - a), y = std::abs(p - b), z = std::abs(p - c);
  return x <= y && x <= z ? a : y <= z ? b : c;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return Fail("usage: check_picture FILE.png WIDTH HEIGHT");
  std::ifstream in(argv[1], std::ios::binary);
  const std::string file((std::istreambuf_iterator<char>(in)), {});
  if (file.size() < 33 || file.compare(1, 3, "PNG")) return Fail("not a PNG");
  const size_t width = Word(file, 16), height = Word(file, 20);
  if (width != std::strtoul(argv[2], nullptr, 10) || height != std::strtoul(argv[3], nullptr, 10))
    return Fail("another size");
  const int type = file[25];
  const size_t channels = type == 6 ? 4 : type == 2 ? 3 : 0;
  if (file[24] != 8 || channels == 0 || file[28] != 0) return Fail("a form of PNG that browsers do not write");
  std::string packed;
  for (size_t at = 8; at + 12 <= file.size();) {
    const size_t size = Word(file, at);
    if (at + 12 + size > file.size()) return Fail("cut off");
    if (!file.compare(at + 4, 4, "IDAT")) packed.append(file, at + 8, size);
    at += 12 + size;
  }
  const size_t stride = width * channels;
  std::vector<uint8_t> raw(height * (stride + 1));
  uLongf got = raw.size();
  if (uncompress(raw.data(), &got, reinterpret_cast<const Bytef*>(packed.data()), packed.size()) != Z_OK ||
      got != raw.size())
    return Fail("does not unpack");
  std::vector<uint8_t> above(stride, 0), row(stride);
  std::set<uint32_t> colours;
  size_t chart = 0;  // pixels of the memory chart's fill, #9db8e8
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* line = &raw[y * (stride + 1)];
    for (size_t x = 0; x < stride; ++x) {
      const int a = x < channels ? 0 : row[x - channels], b = above[x], c = x < channels ? 0 : above[x - channels];
      const int add = line[0] == 0   ? 0
                      : line[0] == 1 ? a
                      : line[0] == 2 ? b
                      : line[0] == 3 ? (a + b) / 2
                                     : Paeth(a, b, c);
      row[x] = static_cast<uint8_t>(line[1 + x] + add);
    }
    for (size_t x = 0; x < width; ++x) {
      const uint8_t* p = &row[x * channels];
      const uint32_t rgb = static_cast<uint32_t>(p[0] << 16 | p[1] << 8 | p[2]);
      colours.insert(rgb);
      chart += rgb == 0x9db8e8;
    }
    above = row;
  }
  if (colours.size() < 50) return Fail("too few colours: nothing is drawn");
  if (chart < 2000) return Fail("no memory chart");
  std::printf("%zu colours, %zu pixels of the memory chart\n", colours.size(), chart);
  return 0;
}
