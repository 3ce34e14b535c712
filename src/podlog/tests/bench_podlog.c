/* How fast log files are read: megabytes a second of the file. */
#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "podlog/podlog.h"
#include "support/bench.h"

#define FILE_BYTES (64u << 20)
#define READ_BYTES 65536u

static void measure(const char *what, dv_str file, const struct dv_podlog_options *options)
{
    struct dv_podlog *log = dv_podlog_new(options);
    struct dv_buf out;
    struct dv_err err;
    uint64_t start = bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    size_t n_shown = 0;

    dv_buf_init(&out, 4 * READ_BYTES);
    for (dv_str rest = file; rest.n > 0; rest = dv_str_slice(rest, READ_BYTES, rest.n)) {
        dv_buf_clear(&out);
        bench_must(dv_podlog_add(log, dv_str_slice(rest, 0, READ_BYTES), &out, &err), what, &err);
        n_shown += out.n;
    }
    (void)printf("%-24s %6.0f MB/s, %zu bytes shown\n", what,
                 (double)file.n * 1e3 / (double)(bench_cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - start),
                 n_shown);
    dv_buf_fini(&out);
    dv_podlog_free(log);
}

static void fill(struct dv_buf *text, const char *line)
{
    dv_buf_init(text, FILE_BYTES + 65536);
    while (text->n < FILE_BYTES)
        dv_buf_add_c(text, line);
}

int main(void)
{
    static const struct dv_podlog_options plain;
    static const struct dv_podlog_options stamped = {.has_timestamps = true};
    static const struct dv_podlog_options old = {.has_since = true,
                                                 .since = {.seconds = 2000000000}};
    struct dv_buf text;

    fill(&text, "2016-10-06T00:17:09.669794202Z stdout F a line of eighty characters, as many "
                "programs write them, with an end.\n");
    measure("short lines", dv_buf_str(&text), &plain);
    measure("with timestamps", dv_buf_str(&text), &stamped);
    measure("all too old", dv_buf_str(&text), &old);
    dv_buf_fini(&text);
    fill(&text, "{\"log\":\"a line of eighty characters, as many programs write them\\n\","
                "\"stream\":\"stdout\",\"time\":\"2016-10-06T00:17:09.669794202Z\"}\n");
    measure("docker", dv_buf_str(&text), &plain);
    dv_buf_fini(&text);
    return 0;
}
