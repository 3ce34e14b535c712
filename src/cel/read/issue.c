/* issue.c - problems of an expression, and where in its text they are. */
#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "cel/read/ast.h"

void dv_cel_issue_add(struct dv_cel_issues *issues, uint32_t at, const char *fmt, ...)
{
    struct dv_cel_issue *issue;
    char text[1024];
    va_list args;

    if (issues->list.n >= DV_CEL_ISSUES_MAX)
        return;
    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    issue = dv_vec_add_in(&issues->list, issues->arena);
    issue->at = at;
    issue->text = dv_str_copy(dv_str_from_c(text), issues->arena);
}

static void print_caret(dv_str line, size_t column, struct dv_buf *buf)
{
    dv_buf_add_c(buf, "\n | ");
    dv_buf_add(buf, line);
    dv_buf_add_c(buf, "\n | ");
    for (size_t i = 1; i < column; i++)
        dv_buf_add_char(buf, '.');
    dv_buf_add_char(buf, '^');
}

static void print_issue(dv_str source, const struct dv_cel_issue *issue, struct dv_buf *buf)
{
    size_t from = 0;
    size_t line = 1;
    size_t end;
    size_t column;

    if (issue->at == UINT32_MAX) {
        dv_buf_printf(buf, "ERROR: <input>:-1:0: %.*s", DV_FMT(issue->text));
        return;
    }
    if (source.n == 0) { /* nothing to point at */
        dv_buf_printf(buf, "ERROR: <input>:1:0: %.*s", DV_FMT(issue->text));
        return;
    }
    for (size_t i = 0; i < issue->at && i < source.n; i++) {
        if (source.p[i] == '\n') {
            from = i + 1;
            line++;
        }
    }
    end = from + dv_str_find_char(dv_str_slice(source, from, source.n), '\n');
    column = dv_cel_utf8_len(dv_str_slice(source, from, issue->at)) + 1;
    dv_buf_printf(buf, "ERROR: <input>:%zu:%zu: %.*s", line, column, DV_FMT(issue->text));
    print_caret(dv_str_slice(source, from, end), column, buf);
}

void dv_cel_issues_print(const struct dv_cel_issues *issues, struct dv_buf *buf)
{
    for (size_t i = 0; i < issues->list.n; i++) {
        if (i > 0)
            dv_buf_add_char(buf, '\n');
        print_issue(issues->source, &issues->list.v[i], buf);
    }
}
