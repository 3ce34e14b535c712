#include "verify/runner/report_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"
#include "base/path.h"
#include "base/str.h"
#include "verify/runner/verify_report.h"
#include "verify/verify.h"

#define REPORT_BYTES_MAX (16u << 20)

static bool is_stdout(dv_str path)
{
    return dv_str_eq(path, DV_STR("-"));
}

bool dv_reports_use_stdout(const struct dv_verify_options *options)
{
    return is_stdout(options->tap) || is_stdout(options->junit) || is_stdout(options->json);
}

/* Something that is there and no file is written to as it is: a pipe, /dev/stdout. */
static bool is_special(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && !S_ISREG(found.st_mode);
}

static bool check_path(dv_str path, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *name = dv_str_to_c(path, arena);
    dv_str dir = dv_path_dir(path);
    struct stat found;

    if (stat(name, &found) == 0 && S_ISDIR(found.st_mode))
        return dv_fail(err, DV_INVALID_ARGUMENT, "the report %s is a directory", name);
    if (dir.n == 0)
        dir = name[0] == '/' ? DV_STR("/") : DV_STR(".");
    /* A file is replaced as a whole, by another one of its directory. */
    if (access(is_special(name) ? name : dv_str_to_c(dir, arena), W_OK) != 0)
        return dv_fail_errno(err, errno, "writing the report %s", name);
    return true;
}

bool dv_reports_check(const struct dv_verify_options *options, struct dv_err *err)
{
    const dv_str paths[] = {options->tap, options->junit, options->json};
    size_t n_to_stdout = 0;

    for (size_t i = 0; i < DV_COUNT(paths); i++) {
        n_to_stdout += is_stdout(paths[i]);
        if (paths[i].n > 0 && !is_stdout(paths[i]) && !check_path(paths[i], err))
            return false;
    }
    return n_to_stdout <= 1 ||
           dv_fail(err, DV_INVALID_ARGUMENT, "only one of --tap, --junit and --json can be \"-\"");
}

static bool write_special(const char *path, dv_str text, struct dv_err *err)
{
    DV_CLEANUP(dv_close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);

    if (fd < 0)
        return dv_fail_errno(err, errno, "writing the report %s", path);
    while (text.n > 0) {
        ssize_t n = write(fd, text.p, text.n);

        if (n < 0 && errno != EINTR)
            return dv_fail_errno(err, errno, "writing the report %s", path);
        text = dv_str_slice(text, n > 0 ? (size_t)n : 0, text.n);
    }
    return true;
}

static bool write_text(dv_str path, dv_str text, struct dv_err *err)
{
    DV_CLEANUP(dv_arena_freep) struct dv_arena *arena = dv_arena_new();
    const char *name = dv_str_to_c(path, arena);

    if (is_special(name))
        return write_special(name, text, err);
    return dv_file_replace(path, text, 0644, err);
}

static bool write_report(const struct dv_verify_report *report, dv_str path,
                         void (*print)(const struct dv_verify_report *report, struct dv_buf *buf),
                         struct dv_err *err)
{
    DV_CLEANUP(dv_buf_fini) struct dv_buf buf;

    dv_buf_init(&buf, REPORT_BYTES_MAX);
    if (path.n == 0)
        return true;
    print(report, &buf);
    if (!is_stdout(path))
        return write_text(path, dv_buf_str(&buf), err);
    return (fwrite(buf.p, 1, buf.n, stdout) == buf.n && fflush(stdout) == 0) ||
           dv_fail_errno(err, errno, "writing the report to standard output");
}

bool dv_reports_write(const struct dv_verify_report *report, struct dv_err *err)
{
    const struct dv_verify_options *options = report->options;
    bool has_tap = write_report(report, options->tap, dv_report_print_tap, err);
    bool has_junit = write_report(report, options->junit, dv_report_print_junit, err);
    bool has_json = write_report(report, options->json, dv_report_print_json, err);

    return has_tap && has_junit && has_json;
}
