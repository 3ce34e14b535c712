/* report_files.h - the files of --tap, --junit and --json. */
#ifndef DV_VERIFY_REPORT_FILES_H
#define DV_VERIFY_REPORT_FILES_H

#include <stdbool.h>

#include "base/defs.h"

struct dv_err;
struct dv_verify_options;
struct dv_verify_report;

/* Whether all reports can be written, as far as can be known before: nobody wants to learn that
 * when all cases have run. */
DV_CHECKED bool dv_reports_check(const struct dv_verify_options *options, struct dv_err *err);
/* Whether a report goes to standard output, in place of the text for people. */
bool dv_reports_use_stdout(const struct dv_verify_options *options);
/* Writes all that are wanted; what one of them fails by does not keep the others. */
DV_CHECKED bool dv_reports_write(const struct dv_verify_report *report, struct dv_err *err);

#endif
