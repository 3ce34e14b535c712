/* documents.h - files of objects: which files, and the documents in them. */
#ifndef DV_CLI_DOCUMENTS_H
#define DV_CLI_DOCUMENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/defs.h"
#include "base/str.h"

struct dv_api_version;
struct dv_arena;
struct dv_err;
struct dv_json;
struct dv_kind;

/* An object of a file, from a document of its own or from a list. */
struct dv_cli_document {
    dv_str file;
    size_t number; /* of the document, from 1 */
    struct dv_json *json;
};

struct dv_cli_documents {
    struct dv_cli_document *v;
    size_t n;
    size_t size;
};

struct dv_cli_paths {
    dv_str *v;
    size_t n;
    size_t size;
};

/* The file, or the *.yaml, *.yml and *.json files of the folder, by name. Blocks.
 * DV_NOT_FOUND: it is not there, or has none. */
DV_CHECKED bool dv_cli_paths_add(dv_str path, struct dv_arena *arena, struct dv_cli_paths *paths,
                                 struct dv_err *err);
/* Adds the objects of a text. Empty documents are left out. After a failure those before the place
 * of it were added. DV_INVALID_ARGUMENT: "FILE, document 2: line 7, column 3: ..." */
DV_CHECKED bool dv_cli_documents_split(dv_str file, dv_str text, struct dv_arena *arena,
                                       struct dv_cli_documents *documents, struct dv_err *err);
/* Like dv_cli_documents_split, for the text of a file; "-" is standard input. Blocks. */
DV_CHECKED bool dv_cli_documents_read(dv_str path, struct dv_arena *arena,
                                      struct dv_cli_documents *documents, struct dv_err *err);

/* The object that a document is about. */
struct dv_cli_subject {
    const struct dv_kind *kind;
    const struct dv_api_version *version;
    dv_str namespace; /* empty: in none */
    dv_str name;
};

/* `wanted_namespace` is that of -n, if any; `namespace` that of objects which name none. Texts are
 * the document's. DV_INVALID_ARGUMENT: the document names nothing that is known, with file,
 * document and line. */
DV_CHECKED bool dv_cli_document_subject(const struct dv_cli_document *document,
                                        dv_str wanted_namespace, dv_str namespace,
                                        struct dv_cli_subject *subject, struct dv_err *err);
/* The field, as the API and dv_json_fail name it ("spec.containers[0].name", "limits[a.b/c]"); of
 * one that is missing the last on the way that is there: what should have it. */
const struct dv_json *dv_cli_field_find(const struct dv_json *node, dv_str path);
/* "FILE, document 2, line 7": of the field, as the API names it ("spec.containers[0].name"), of
 * what should have it when it is not there, or of the document when it is empty. */
dv_str dv_cli_document_place(const struct dv_cli_document *document, dv_str field,
                             struct dv_arena *arena);

#endif
