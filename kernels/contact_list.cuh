// Lists of contacts.
#pragma once

// Contacts that a residue's list has room for. C-alphas of proteins have at most about 20 others
// within 8 A.
constexpr unsigned CONTACTS_MAX = 32;
