/* verify_report.h - what the cases found, for people and for programs. */
#ifndef DV_VERIFY_REPORT_H
#define DV_VERIFY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "verify/kit/trial.h"
#include "verify/verify.h"

struct dv_buf;
struct dv_verify_case;

/* One case and what came of it. */
struct dv_verify_result {
    const char *id;
    const char *proves;
    enum dv_outcome outcome;
    dv_str reason; /* empty when it passed */
    size_t n_calls;
    uint64_t took_ms;
    bool is_done;
    bool is_case; /* and not the probe: it can be explained */
};

struct dv_verify_report {
    const struct dv_verify_options *options;
    dv_str name; /* of the driver or the resource */
    struct dv_verify_result *results;
    size_t n_results;
    uint64_t took_ms;
};

struct dv_verify_sum dv_report_sum(const struct dv_verify_report *report);

/* For people, one case at a time. */
void dv_report_print_case(const struct dv_verify_report *report,
                          const struct dv_verify_result *result, struct dv_buf *buf);
/* The last lines that the driver printed in the probe: what is wrong with it, or with its command,
 * before anything was asked of it. */
void dv_report_print_last_words(const struct dv_verify_report *report, struct dv_buf *buf);
void dv_report_print_sum(const struct dv_verify_report *report, struct dv_buf *buf);

/* Whole reports: TAP version 13, JUnit's XML, JSON. */
void dv_report_print_tap(const struct dv_verify_report *report, struct dv_buf *buf);
void dv_report_print_junit(const struct dv_verify_report *report, struct dv_buf *buf);
void dv_report_print_json(const struct dv_verify_report *report, struct dv_buf *buf);

#endif
