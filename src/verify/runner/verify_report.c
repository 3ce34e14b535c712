#include "verify/runner/verify_report.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/defs.h"
#include "base/err.h"
#include "base/file.h"
#include "base/visible.h"

/* The limits of what is told of the driver's output, when it did not come far. */
#define LOG_BYTES_MAX (64u << 20)
#define LAST_LINES 10u
#define LAST_BYTES_MAX 2000u

static const char *const words[] = {
    [DV_PASSED] = "pass", [DV_FAILED] = "FAIL", [DV_SKIPPED] = "skip", [DV_BROKEN] = "BROKEN"};
static const char *const colours[] = {[DV_PASSED] = "\033[32m",
                                      [DV_FAILED] = "\033[31m",
                                      [DV_SKIPPED] = "",
                                      [DV_BROKEN] = "\033[35m"};
static const char *const json_words[] = {[DV_PASSED] = "passed",
                                         [DV_FAILED] = "failed",
                                         [DV_SKIPPED] = "skipped",
                                         [DV_BROKEN] = "broken"};

struct dv_verify_sum dv_report_sum(const struct dv_verify_report *report)
{
    size_t counts[DV_COUNT(words)] = {0};

    for (size_t i = 0; i < report->n_results; i++)
        counts[report->results[i].outcome]++;
    return (struct dv_verify_sum){.n_passed = counts[DV_PASSED],
                                  .n_failed = counts[DV_FAILED],
                                  .n_skipped = counts[DV_SKIPPED],
                                  .n_broken = counts[DV_BROKEN]};
}

/* ---- for people ---- */

void dv_report_print_case(const struct dv_verify_report *report,
                          const struct dv_verify_result *result, struct dv_buf *buf)
{
    const struct dv_verify_options *options = report->options;
    const char *colour = options->has_colours ? colours[result->outcome] : "";

    dv_buf_printf(buf, " %s%-6s%s %-31s ", colour, words[result->outcome],
                  colour[0] ? "\033[0m" : "", result->id);
    if (result->outcome == DV_PASSED)
        dv_buf_add_c(buf, result->proves);
    else
        dv_buf_add_visible(buf, result->reason);
    dv_buf_add_char(buf, '\n');
    if (result->outcome != DV_FAILED && result->outcome != DV_BROKEN)
        return;
    if (result->n_calls > 0)
        dv_buf_printf(
            buf, "        what was sent and answered: %zu call(s), davit record show %.*s/%s.dav\n",
            result->n_calls, DV_FMT(options->dir), result->id);
    if (options->attach.n == 0) /* of one that runs already it is elsewhere */
        dv_buf_printf(buf, "        what the driver printed: %.*s/%s.log\n", DV_FMT(options->dir),
                      result->id);
    if (result->outcome == DV_FAILED && result->is_case)
        dv_buf_printf(buf,
                      "        why it matters, what the protocol says: davit verify explain "
                      "%s\n",
                      result->id);
}

/* The last lines of a text, as far as they are not very long. */
static dv_str last_lines(dv_str text)
{
    size_t n = 0;
    size_t at;

    if (text.n > 0 && text.p[text.n - 1] == '\n')
        text.n--;
    for (at = text.n; at > 0 && text.n - at < LAST_BYTES_MAX; at--)
        if (text.p[at - 1] == '\n' && ++n == LAST_LINES)
            break;
    return dv_str_slice(text, at, text.n);
}

void dv_report_print_last_words(const struct dv_verify_report *report, struct dv_buf *buf)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    dv_str path = dv_str_printf(arena, "%.*s/probe.log", DV_FMT(report->options->dir));
    struct dv_err err;
    dv_str line;
    dv_str text;

    if (!dv_file_read(path, LOG_BYTES_MAX, arena, &text, &err))
        return; /* the file was named before */
    text = last_lines(text);
    while (text.n > 0 && dv_str_split(&text, '\n', &line)) {
        dv_buf_add_c(buf, "        | ");
        dv_buf_add_visible(buf, line);
        dv_buf_add_char(buf, '\n');
    }
}

void dv_report_print_sum(const struct dv_verify_report *report, struct dv_buf *buf)
{
    struct dv_verify_sum sum = dv_report_sum(report);

    dv_buf_printf(buf, " %zu passed, %zu failed, %zu skipped", sum.n_passed, sum.n_failed,
                  sum.n_skipped);
    if (sum.n_broken > 0)
        dv_buf_printf(buf, ", %zu could not be run", sum.n_broken);
    dv_buf_printf(buf, " in %llu.%llu s: %s ", (unsigned long long)(report->took_ms / 1000),
                  (unsigned long long)(report->took_ms % 1000 / 100),
                  dv_verify_kind_name(report->options->kind));
    dv_buf_add_visible(buf, report->name);
    dv_buf_add_char(buf, '\n');
}

/* ---- TAP ---- */

void dv_report_print_tap(const struct dv_verify_report *report, struct dv_buf *buf)
{
    dv_buf_printf(buf, "TAP version 13\n1..%zu\n", report->n_results);
    for (size_t i = 0; i < report->n_results; i++) {
        const struct dv_verify_result *result = &report->results[i];
        bool is_bad = result->outcome == DV_FAILED || result->outcome == DV_BROKEN;

        dv_buf_printf(buf, "%sok %zu - %s", is_bad ? "not " : "", i + 1, result->id);
        if (result->outcome == DV_SKIPPED) {
            dv_buf_add_c(buf, " # SKIP ");
            dv_buf_add_visible(buf, result->reason);
        }
        dv_buf_add_char(buf, '\n');
        if (is_bad) {
            dv_buf_add_c(buf, "  ---\n  message: ");
            dv_buf_add_json(buf, result->reason);
            dv_buf_add_c(buf, "\n  ...\n");
        }
    }
}

/* ---- JUnit ---- */

/* Text in XML 1.0, which has no way to write most control characters. */
static void add_xml(struct dv_buf *buf, dv_str text)
{
    for (size_t i = 0; i < text.n;) {
        size_t n = dv_str_utf8_char(dv_str_slice(text, i, text.n));
        dv_str one = dv_str_slice(text, i, i + (n ? n : 1));

        if (n == 0 || ((unsigned char)one.p[0] < 0x20 && one.p[0] != '\n' && one.p[0] != '\t'))
            dv_buf_add_c(buf, "?");
        else if (one.p[0] == '<')
            dv_buf_add_c(buf, "&lt;");
        else if (one.p[0] == '&')
            dv_buf_add_c(buf, "&amp;");
        else if (one.p[0] == '"')
            dv_buf_add_c(buf, "&quot;");
        else
            dv_buf_add(buf, one);
        i += one.n;
    }
}

static void add_seconds(struct dv_buf *buf, uint64_t ms)
{
    dv_buf_printf(buf, "%llu.%03u", (unsigned long long)(ms / 1000), (unsigned)(ms % 1000));
}

static void add_junit_case(const struct dv_verify_report *report,
                           const struct dv_verify_result *result, struct dv_buf *buf)
{
    static const char *const tags[] = {
        [DV_PASSED] = "", [DV_FAILED] = "failure", [DV_SKIPPED] = "skipped", [DV_BROKEN] = "error"};

    dv_buf_printf(buf, "    <testcase classname=\"davit.verify.%s\" name=\"%s\" time=\"",
                  dv_verify_kind_name(report->options->kind), result->id);
    add_seconds(buf, result->took_ms);
    if (result->outcome == DV_PASSED) {
        dv_buf_add_c(buf, "\"/>\n");
        return;
    }
    dv_buf_printf(buf, "\">\n      <%s message=\"", tags[result->outcome]);
    add_xml(buf, result->reason);
    dv_buf_add_c(buf, "\"/>\n    </testcase>\n");
}

void dv_report_print_junit(const struct dv_verify_report *report, struct dv_buf *buf)
{
    struct dv_verify_sum sum = dv_report_sum(report);

    dv_buf_printf(buf,
                  "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n"
                  "  <testsuite name=\"davit verify %s\" tests=\"%zu\" failures=\"%zu\" "
                  "errors=\"%zu\" skipped=\"%zu\" time=\"",
                  dv_verify_kind_name(report->options->kind), report->n_results, sum.n_failed,
                  sum.n_broken, sum.n_skipped);
    add_seconds(buf, report->took_ms);
    dv_buf_add_c(buf, "\">\n");
    for (size_t i = 0; i < report->n_results; i++)
        add_junit_case(report, &report->results[i], buf);
    dv_buf_add_c(buf, "  </testsuite>\n</testsuites>\n");
}

/* ---- JSON ---- */

void dv_report_print_json(const struct dv_verify_report *report, struct dv_buf *buf)
{
    struct dv_verify_sum sum = dv_report_sum(report);

    dv_buf_printf(buf, "{\"kind\":\"%s\",\"name\":", dv_verify_kind_name(report->options->kind));
    dv_buf_add_json(buf, report->name);
    dv_buf_printf(buf,
                  ",\"passed\":%zu,\"failed\":%zu,\"skipped\":%zu,\"broken\":%zu,\"ms\":%llu,"
                  "\"cases\":[",
                  sum.n_passed, sum.n_failed, sum.n_skipped, sum.n_broken,
                  (unsigned long long)report->took_ms);
    for (size_t i = 0; i < report->n_results; i++) {
        const struct dv_verify_result *result = &report->results[i];

        dv_buf_printf(buf,
                      "%s\n {\"id\":\"%s\",\"outcome\":\"%s\",\"ms\":%llu,\"calls\":%zu,"
                      "\"reason\":",
                      i > 0 ? "," : "", result->id, json_words[result->outcome],
                      (unsigned long long)result->took_ms, result->n_calls);
        dv_buf_add_json(buf, result->reason);
        dv_buf_add_char(buf, '}');
    }
    dv_buf_add_c(buf, "\n]}\n");
}
