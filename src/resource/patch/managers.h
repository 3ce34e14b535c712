/* managers.h - who owns which fields of an object: metadata.managedFields as sets. */
#ifndef DV_RESOURCE_MANAGERS_H
#define DV_RESOURCE_MANAGERS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"
#include "resource/patch.h"
#include "resource/patch/field_set.h"
#include "resource/values.h"

struct dv_arena;
struct dv_message;

/* An entry of managedFields. */
struct dv_field_owner {
    dv_str manager;
    dv_str api_version;
    dv_str subresource;
    struct dv_time time;
    bool is_applied; /* operation Apply, else Update */
    struct dv_fields fields;
};

struct dv_field_owners {
    struct dv_field_owner *v;
    size_t n;
    size_t size;
};

/* Decodes managedFields. Entries that cannot be read own nothing. */
struct dv_field_owners dv_field_owners_decode(const struct dv_managed_fields *managed,
                                              struct dv_arena *arena);
/* Encodes the entries in the order of the reference, without those that own nothing. */
struct dv_managed_fields dv_field_owners_encode(struct dv_field_owners *owners,
                                                struct dv_arena *arena);
/* The entry of a manager, which is made when there is none. Entries of Update are told apart by
 * version, too. */
struct dv_field_owner *dv_field_owners_get(struct dv_field_owners *owners,
                                           const struct dv_manager *manager, bool is_applied,
                                           struct dv_arena *arena);
/* Reduces the entries of Update to their limit: the oldest become one of "ancient-changes". */
void dv_field_owners_cap(struct dv_field_owners *owners, struct dv_arena *arena);
/* Whether an entry's fields have the names of that version: the two groups of events differ. */
bool dv_field_owner_speaks(const struct dv_field_owner *owner, dv_str api_version);

/* The fields without those that nobody owns: metadata.name, resourceVersion and so on. */
struct dv_fields dv_field_owners_strip(const struct dv_fields *fields, struct dv_arena *arena);
/* The fields that an endpoint of a kind resets: the main one the status, the status one the
 * rest. */
struct dv_fields dv_field_owners_reset(const struct dv_message *message, dv_str subresource,
                                       struct dv_arena *arena);
/* Like dv_field_owners_reset, for an object of a kind that a definition made. */
struct dv_fields dv_field_owners_reset_custom(bool has_status, dv_str subresource,
                                              struct dv_arena *arena);

#endif
