// Finds arrays in the image of a safetensors file: eight bytes with the length of a header, the header as JSON, arrays.
//
// The header is {"name": {"dtype": "F32", "shape": [4, 10], "data_offsets": [0, 160]}, ..., "__metadata__": {...}};
// places count from the header's end. Nothing is believed: a text that is not such JSON, and an array that is not where
// and what the library needs, end in a message.
#include <stdlib.h>
#include <string.h>

#include "runtime_min/weights/set.h"

enum { kMostDepth = 32 };

void kiln_model_text_add(struct kiln_model_text* t, const char* s) {
  while (t->data && *s && t->used + 1 < t->bytes) t->data[t->used++] = *s++;
  if (t->data && t->bytes) t->data[t->used] = 0;
}

void kiln_model_text_number(struct kiln_model_text* t, int64_t n) {
  char digits[24];
  int at = sizeof digits - 1;
  digits[at] = 0;
  const int negative = n < 0;
  do {
    digits[--at] = (char)('0' + (negative ? -(n % 10) : n % 10));
  } while (n /= 10);
  if (negative) digits[--at] = '-';
  kiln_model_text_add(t, digits + at);
}

// The header, as far as it has been read. `text` has room for any string in it.
struct reader {
  const char *at, *end;
  char* text;
  int bad;
};

// What the header says of one array.
struct tensor {
  char dtype[16];
  int64_t rank, begin, end;
  const char* shape;  // the text behind its bracket
};

static char peek(struct reader* r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t')) ++r->at;
  return r->at < r->end ? *r->at : 0;
}

static int eat(struct reader* r, char c) {
  if (r->bad || peek(r) != c) return 0;
  ++r->at;
  return 1;
}

static void need(struct reader* r, char c) {
  if (!eat(r, c)) r->bad = 1;
}

static int hex4(struct reader* r) {
  int v = 0;
  for (int k = 0; k < 4; ++k) {
    const char c = r->at < r->end ? *r->at++ : 0;
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) return -1;
    v = v * 16 + digit;
  }
  return v;
}

// Of a character beyond the first 128; at most as long as its escape.
static size_t utf8(char* out, int c) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
  return out[0] = (char)(0xe0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 63)), out[2] = (char)(0x80 | (c & 63)), 3;
}

// Reads a string into r->text. Characters outside the basic plane are written plainly, not as two escapes.
static void string(struct reader* r) {
  size_t n = 0;
  need(r, '"');
  while (!r->bad) {
    const char c = r->at < r->end ? *r->at++ : 0;
    if (c == '"') break;
    if (c == '\\') {
      const char e = r->at < r->end ? *r->at++ : 0;
      static const char kFrom[] = "\"\\/bfnrt", kTo[] = "\"\\/\b\f\n\r\t";
      const char* plain = e ? memchr(kFrom, e, sizeof kFrom - 1) : NULL;
      const int code = e == 'u' ? hex4(r) : -1;
      if (plain)
        r->text[n++] = kTo[plain - kFrom];
      else if (code > 0)
        n += utf8(r->text + n, code);
      else
        r->bad = 1;
    } else if (!c) {
      r->bad = 1;
    } else {
      r->text[n++] = c;
    }
  }
  r->text[n] = 0;
}

static int64_t integer(struct reader* r) {
  int64_t v = 0;
  char c = peek(r);
  if (c < '0' || c > '9') r->bad = 1;
  for (; !r->bad && r->at < r->end && *r->at >= '0' && *r->at <= '9'; ++r->at)
    if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *r->at - '0', &v)) r->bad = 1;
  return v;
}

// Any value, which does not matter.
static void skip(struct reader* r, int depth) {
  const char c = peek(r);
  if (depth > kMostDepth) r->bad = 1;
  if (r->bad) return;
  if (c == '"') {
    string(r);
  } else if (c == '{' || c == '[') {
    const char close = c == '{' ? '}' : ']';
    ++r->at;
    for (int first = 1; !r->bad && !eat(r, close); first = 0) {
      if (!first) need(r, ',');
      if (c == '{') {
        string(r);
        need(r, ':');
      }
      skip(r, depth + 1);
    }
  } else {
    const char* begin = r->at;
    while (r->at < r->end && ((*r->at >= '0' && *r->at <= '9') || (*r->at >= 'a' && *r->at <= 'z') || *r->at == '.' ||
                              *r->at == '-' || *r->at == '+' || *r->at == 'E'))
      ++r->at;
    if (r->at == begin) r->bad = 1;
  }
}

static struct tensor tensor(struct reader* r) {
  struct tensor t = {{0}, 0, -1, -1, NULL};
  need(r, '{');
  for (int first = 1; !r->bad && !eat(r, '}'); first = 0) {
    if (!first) need(r, ',');
    string(r);
    need(r, ':');
    if (r->bad) break;
    if (!strcmp(r->text, "dtype")) {
      string(r);
      const size_t length = strlen(r->text);
      if (length >= sizeof t.dtype) r->bad = 1;
      if (!r->bad) memcpy(t.dtype, r->text, length + 1);
    } else if (!strcmp(r->text, "shape")) {
      need(r, '[');
      t.shape = r->at;
      for (; !r->bad && !eat(r, ']'); ++t.rank) {
        if (t.rank) need(r, ',');
        integer(r);
      }
    } else if (!strcmp(r->text, "data_offsets")) {
      need(r, '[');
      t.begin = integer(r);
      need(r, ',');
      t.end = integer(r);
      need(r, ']');
    } else {
      skip(r, 0);
    }
  }
  if (!t.shape || t.begin < 0 || t.end < t.begin) r->bad = 1;
  return t;
}

static const int64_t* extents_of(const struct kiln_weight* w) {
  return (const int64_t*)((const char*)&kiln_model_weights_table + w->extents);
}

static void describe(struct kiln_model_text* why, const struct kiln_weight* w) {
  kiln_model_text_add(why, w->dtype);
  kiln_model_text_add(why, "[");
  for (int64_t d = 0; d < w->rank; ++d) {
    if (d) kiln_model_text_add(why, ", ");
    kiln_model_text_number(why, extents_of(w)[d]);
  }
  kiln_model_text_add(why, "]");
}

static int32_t wrong(struct kiln_model_text* why, const char* name, const char* what, const struct kiln_weight* w) {
  kiln_model_text_add(why, "'");
  kiln_model_text_add(why, name);
  kiln_model_text_add(why, "' ");
  kiln_model_text_add(why, what);
  if (w) describe(why, w);
  return KILN_WEIGHTS;
}

static int same_shape(const struct reader* header, const struct tensor* t, const struct kiln_weight* w) {
  struct reader r = *header;
  r.at = t->shape;
  if (t->rank != w->rank) return 0;
  for (int64_t d = 0; d < w->rank; ++d) {
    if (d) need(&r, ',');
    if (integer(&r) != extents_of(w)[d]) return 0;
  }
  return 1;
}

// Which array of the table is called so; -1: none.
static int64_t called(const char* name) {
  const struct kiln_weights_table* table = &kiln_model_weights_table;
  for (int64_t k = 0; k < table->count; ++k) {
    const char* own = (const char*)table + table->weight[k].names;
    for (int64_t n = 0; n < table->weight[k].name_count; ++n, own += strlen(own) + 1)
      if (!strcmp(own, name)) return k;
  }
  return -1;
}

static int32_t take(const struct reader* r, int64_t k, const struct tensor* t, const unsigned char* data, int64_t bytes,
                    const void** array, struct kiln_model_text* why) {
  const struct kiln_weight* w = &kiln_model_weights_table.weight[k];
  const char* name = (const char*)&kiln_model_weights_table + w->names;
  if (array[k]) return wrong(why, name, "is there twice", NULL);
  if (strcmp(t->dtype, w->dtype) || !same_shape(r, t, w) || t->end - t->begin != w->bytes)
    return wrong(why, name, "is not ", w);
  if (t->end > bytes) return wrong(why, name, "lies behind the end of the file", NULL);
  if ((uintptr_t)(data + t->begin) & (uint64_t)(w->alignment - 1))
    return wrong(why, name, "is not aligned to its elements", NULL);
  array[k] = data + t->begin;
  return KILN_OK;
}

static int32_t find_all(struct reader* r, const unsigned char* data, int64_t bytes, const void** array,
                        struct kiln_model_text* why) {
  need(r, '{');
  for (int first = 1; !r->bad && !eat(r, '}'); first = 0) {
    if (!first) need(r, ',');
    string(r);
    need(r, ':');
    if (r->bad) break;
    if (!strcmp(r->text, "__metadata__")) {
      skip(r, 0);
      continue;
    }
    const int64_t k = called(r->text);
    const struct tensor t = tensor(r);
    if (r->bad || k < 0) continue;
    const int32_t status = take(r, k, &t, data, bytes, array, why);
    if (status) return status;
  }
  if (r->bad) {
    kiln_model_text_add(why, "the header is not that of a safetensors file");
    return KILN_WEIGHTS;
  }
  for (int64_t k = 0; k < kiln_model_weights_table.count; ++k) {
    const struct kiln_weight* w = &kiln_model_weights_table.weight[k];
    if (!array[k] && w->bytes) return wrong(why, (const char*)&kiln_model_weights_table + w->names, "is missing: ", w);
  }
  return KILN_OK;
}

int32_t kiln_model_weights_find(const unsigned char* image, size_t bytes, const void** array,
                                struct kiln_model_text* why) {
  uint64_t header = 0;
  if (bytes >= sizeof header) memcpy(&header, image, sizeof header);
  if (header < 2 || header > bytes - sizeof header) {
    kiln_model_text_add(why, "not a safetensors file");
    return KILN_WEIGHTS;
  }
  const char* text = (const char*)image + sizeof header;
  char* room = malloc(header + 1);
  if (!room) {
    kiln_model_text_add(why, "memory ran out");
    return KILN_WEIGHTS;
  }
  struct reader r = {text, text + header, room, 0};
  const int32_t status =
      find_all(&r, image + sizeof header + header, (int64_t)(bytes - sizeof header - header), array, why);
  free(room);
  return status;
}
