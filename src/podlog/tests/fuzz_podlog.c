/* Log files of any content: what is shown does not depend on how the bytes are cut, keeps the
 * limits, and is the same for the last lines as when they are read alone.
 *
 *     1 byte   options          1 byte   tailLines      1 byte   limitBytes
 *     rest     the file; each '@' in it stands for the time of a line */
#include <assert.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/calendar.h"
#include "base/err.h"
#include "base/str.h"
#include "podlog/podlog.h"

#define INPUT_BYTES_MAX 4096u
/* A few bytes of the input stand for many: some lines are longer than what is kept of one. */
#define LONG_PARTS_MAX 3u
#define LONG_BYTES 40000
#define FILE_BYTES_MAX (1u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_file(const struct dv_podlog_options *options, dv_str text, size_t step,
                      struct dv_buf *out)
{
    struct dv_podlog *log = dv_podlog_new(options);
    struct dv_err err;
    bool is_fine = true;

    dv_buf_init(out, 2 * FILE_BYTES_MAX);
    for (; is_fine && text.n > 0; text = dv_str_slice(text, step, text.n)) {
        bool was_done = dv_podlog_is_done(log);
        size_t before = out->n;

        is_fine = dv_podlog_add(log, dv_str_slice(text, 0, step), out, &err);
        assert(!was_done || out->n == before);
    }
    if (is_fine)
        is_fine = dv_podlog_end(log, out, &err);
    assert(is_fine || (err.code == DV_INVALID_ARGUMENT && out->n == 0));
    dv_podlog_free(log);
    return is_fine;
}

static uint64_t find_tail(dv_str text, uint64_t n_lines)
{
    struct dv_podlog_tail tail;
    uint64_t offset;
    uint64_t n_newlines = 0;
    size_t n;

    dv_podlog_tail_init(&tail, text.n, n_lines);
    while (dv_podlog_tail_wants(&tail, &offset, &n))
        dv_podlog_tail_add(&tail, dv_str_slice(text, offset, offset + n));
    assert(tail.start <= text.n);
    assert(tail.start == 0 || text.p[tail.start - 1] == '\n');
    for (size_t i = tail.start; i < text.n; i++)
        n_newlines += text.p[i] == '\n';
    assert(n_newlines == n_lines || (n_newlines < n_lines && tail.start == 0));
    return tail.start;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dv_podlog_options options = {0};
    struct dv_buf text;
    struct dv_buf whole;
    struct dv_buf cut;
    dv_str file;
    size_t n_long = 0;
    bool is_fine;

    if (size < 3 || size > INPUT_BYTES_MAX)
        return 0;
    options.is_followed = data[0] & 1;
    options.has_timestamps = data[0] & 2;
    options.has_tail = data[0] & 4;
    options.tail_lines = data[1];
    options.has_limit = data[0] & 8;
    options.limit_bytes = (uint64_t)data[2] * 97;
    options.has_since = data[0] & 16;
    options.since = (struct dv_rfc3339){.seconds = 1475713030};
    dv_buf_init(&text, FILE_BYTES_MAX);
    for (size_t i = 3; i < size; i++) {
        if (data[i] == '@')
            dv_buf_printf(&text, "2016-10-06T00:17:%02d.5Z", data[i - 1] % 60);
        else if (data[i] == 0xff && n_long++ < LONG_PARTS_MAX)
            dv_buf_printf(&text, "%*d", LONG_BYTES, 0);
        else
            dv_buf_add_char(&text, (char)data[i]);
    }
    file = dv_buf_str(&text);
    if (options.has_tail)
        file = dv_str_slice(file, find_tail(file, options.tail_lines), file.n);
    is_fine = read_file(&options, file, SIZE_MAX, &whole);
    assert(read_file(&options, file, file.n > LONG_BYTES ? 999 : 1 + (size_t)data[2] % 16, &cut) ==
           is_fine);
    assert(dv_str_eq(dv_buf_str(&whole), dv_buf_str(&cut)));
    assert(!options.has_limit || whole.n <= options.limit_bytes);
    assert(options.has_timestamps || whole.n <= file.n);
    dv_buf_fini(&text);
    dv_buf_fini(&whole);
    dv_buf_fini(&cut);
    return 0;
}
