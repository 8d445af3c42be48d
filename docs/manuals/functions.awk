# functions.awk - the manual pages of the functions, from the comments of the public headers.
#
#   awk -v folder=OUT -v version=1.2.3 -f roff.awk -f functions.awk HEADER...
#
# What a header says is written nowhere else.  A comment that begins with "NAME - what it does" begins a page;
# it may have several such lines, and "NAME, _end - ..." is short for two.  What is declared between it and the next
# such comment is on the page, with the comments before each declaration.  Comments before types, and those that begin
# with "struct NAME - ", are on the page of the header (component_flags.h(3)), as its own first comment is.  A header that
# is "Not to be included for itself" has none.
#
# In a comment, a line "  word  text" is a parameter, or "returns", or one of those that NOTES has; four blanks begin
# a line of code.  Every other name than the first of a page is a file that only says where the page is.  The names of all
# files are in OUT/names.
# What would surprise: a function that is on no page ends it with an error, so that no new one is forgotten.
# Tests: tests/project/manuals.t.

BEGIN { n_pages = 0; NOTES = " owns memory threads signals fork errors source " }

FNR == 1 { end_of_header(); header = FILENAME; sub(/.*\//, "", header); here = home = inner = 0; skipped = depth = 0 }
{ line = $0 }
comment_open { comment_line(line); next }
inner && !/^\/\*/ { next }
/^#(if|ifdef|ifndef)/ { depth++; if (/__cplusplus/ && !skipped) skipped = depth; next }
/^#endif/ { if (skipped == depth) skipped = 0; depth--; next }
/^#el/ { if (skipped == depth) skipped = 0; next }
skipped { next }
/^\/\*/ { comment_open = 1; n_comment = 0; sub(/^\/\* ?/, "", line); comment_line(line); next }
body { if (/^}/) body = 0; next }
gathered != "" { gathered = gathered "\n" $0; if ($0 ~ closing) declaration(gathered); next }
/^static inline [^(]*$/ { body = 1; next }
/^(COMPONENT_API|static inline) / { gather(";") }
/^typedef / { gather(";") }
/^(struct|union|enum) [A-Za-z_]+ \{/ { gather("^}") }
/^struct [a-z_]+;/ { pending_to_header() }
/^#define / { gather("[^\\\\]$") }

function gather(until) {
	closing = until
	gathered = line
	if (until != "^}" && line ~ until)
		declaration(gathered)
}

# Comments

function comment_line(s,    last) {
	last = s ~ /\*\//
	sub(/ *\*\/.*$/, "", s)
	sub(/^ \*( |$)/, "", s)
	if (n_comment > 0 || s != "")
		comment[++n_comment] = s
	if (!last)
		return
	comment_open = 0
	while (n_comment > 0 && comment[n_comment] == "")
		n_comment--
	comment_end()
}

function comment_end(    i) {
	if (inner)
		return
	if (!home) {
		sub(/^[a-z_]+\.h - /, "component_" header " - ", comment[1])
		home = here = new_page()
		titles()
		keep_text(home, "")
		overview[home] = n_item[home]
		for (i = 1; i <= n_comment; i++)
			inner = inner || comment[i] ~ /Not to be included for itself/
		of_others[home] = inner
	} else if (comment[1] ~ /^(struct|enum|union) [a-z_]+ - /) {
		here = home
		keep_text(home, "\\fB" comment[1] "\\fR")
	} else if (comment[1] ~ /^[A-Za-z_0-9]+(, _[a-z]+)* +- /) {
		here = new_page()
		titles()
		keep_text(here, "")
	} else {
		pending = n_comment
	}
}

function new_page() {
	page_header[++n_pages] = header
	n_what[n_pages] = n_item[n_pages] = 0
	return n_pages
}

# Takes the lines "NAME - what" from the front of the comment, each with those that go on with it.
function titles(    i, at, names, rest) {
	for (i = 1; i <= n_comment && comment[i] != ""; i++) {
		if (match(comment[i], /^[A-Za-z_0-9.]+(, _[a-z]+)* +- /)) {
			at = index(comment[i], " - ")
			names = substr(comment[i], 1, at - 1)
			add_names(here, names, substr(comment[i], at + 3))
		} else {
			sub(/^ +/, "", comment[i])
			what[here, n_what[here]] = what[here, n_what[here]] " " comment[i]
		}
	}
	# Of a comment in one piece the first sentence is the title.
	if (i > n_comment && match(what[here, n_what[here]], /[.?]  /)) {
		rest = substr(what[here, n_what[here]], RSTART + RLENGTH)
		what[here, n_what[here]] = substr(what[here, n_what[here]], 1, RSTART)
		comment[1] = rest
		n_comment = 1
		i = 1
	}
	sub(/\.$/, "", what[here, n_what[here]])
	first_line = i
}

# "x_begin, _end" is x_begin and x_end.
function add_names(page, names, summary,    n, list, i, stem) {
	gsub(/ /, "", names)
	n = split(names, list, ",")
	for (i = 1; i <= n; i++) {
		if (list[i] ~ /^_/)
			list[i] = stem list[i]
		else
			stem = list[i]
		sub(/_[a-z]+$/, "", stem)
		take_name(page, list[i])
		names = i == 1 ? list[i] : names ", " list[i]
	}
	what_names[page, ++n_what[page]] = names
	what[page, n_what[page]] = summary
}

function take_name(page, name) {
	if (name in has_page) {
		print FILENAME ":" FNR ": " name " has a page already" >"/dev/stderr"
		failed = 1
	}
	has_page[name] = page
	pages_names[page] = pages_names[page] == "" ? name : pages_names[page] " " name
}

# The rest of the comment, from first_line on; what is in front of it, if anything, is a paragraph of its own.
function keep_text(page, front,    i) {
	keep(page, "text", "")
	if (front != "") {
		keep(page, "text", front)
		keep(page, "text", "")
		first_line = 2
	}
	for (i = first_line; i <= n_comment; i++)
		keep(page, "text", comment[i])
	keep(page, "text", "")
	pending = 0
}

function keep(page, kind, s) {
	item_kind[page, ++n_item[page]] = kind
	item[page, n_item[page]] = s
}

function pending_to_header() {
	here = pending ? home : here
	if (pending) {
		first_line = 1
		keep_text(home, "")
	}
}

# Declarations

function declaration(s,    name) {
	gathered = ""
	if (s ~ /^(COMPONENT_API|static inline) /)
		prototype(s)
	else if (s ~ /^#define /)
		macro(s)
	else {
		pending_to_header()
		if (s ~ /^typedef /)
			keep(here, "code", wrapped(plain(s)))
		else
			keep(here, "code", s)
	}
}

# On one line, without what only a compiler reads.
function plain(s) {
	gsub(/[ \t\n]+/, " ", s)
	sub(/^(COMPONENT_API|static inline) /, "", s)
	sub(/ *COMPONENT_PRINTF\([^)]*\)/, "", s)
	sub(/ *__attribute__\(\(.*\)\)/, "", s)
	return s
}

function prototype(s,    name, trailing, i) {
	if (match(s, /\/\* .* \*\//)) {
		trailing = substr(s, RSTART + 3, RLENGTH - 6)
		s = substr(s, 1, RSTART - 1)
	}
	s = plain(s)
	sub(/ +$/, "", s)
	match(s, /[A-Za-z_0-9]+\(/)
	name = substr(s, RSTART, RLENGTH - 1)
	if (here == home) {
		print FILENAME ":" FNR ": " name " has no manual page: begin its comment with \"" name " - what it does\"" >"/dev/stderr"
		failed = 1
		return
	}
	keep(here, "code", wrapped(s))
	if (trailing != "") {
		comment[1] = trailing
		pending = n_comment = 1
	}
	if (pending)
		with_own_words(name)
	else if (!(name in has_page)) {
		take_name(here, name)
		what_names[here, n_what[here]] = what_names[here, n_what[here]] ", " name
	}
}

# A function on another one's page whose comment has no title: its first sentence is one.
function with_own_words(name,    s, i, end) {
	for (i = 1; i <= n_comment; i++)
		s = s (i > 1 ? " " : "") comment[i]
	end = match(s, /[.;:?]( |$)/) ? RSTART - 1 : length(s)
	if (!(name in has_page))
		add_names(here, name, tolower(substr(s, 1, 1)) substr(s, 2, end - 1))
	if (end + 1 < length(s)) {
		keep(here, "text", "")
		keep(here, "text", name "(): " s)
		keep(here, "text", "")
	}
	pending = 0
}

# Names that end in '_' are those of other macros, and so are the comments before them; what one stands for is shown where it is a number.
function macro(s,    name) {
	match(s, /^#define [A-Za-z_0-9]+/)
	name = substr(s, 9, RLENGTH - 8)
	if (name ~ /_$/)
		pending = 0
	if (name ~ /_$/ || name ~ /_H$/ || (here != home && !pending && !((name in has_page) && has_page[name] == here)))
		return
	pending_to_header()
	if (here == home && s ~ /^#define [A-Z_]+\(/)
		take_name(home, name)
	if (match(s, /^#define [A-Za-z_0-9]+\([^)]*\)/) || s ~ /\n|\{|_\(/)
		s = substr(s, 1, RSTART > 0 ? RLENGTH : 8 + length(name))
	keep(here, "code", s)
}

function wrapped(s,    n, words, i, out, width) {
	n = split(s, words, " ")
	for (i = 1; i <= n; i++) {
		if (width > 0 && width + length(words[i]) > 70) {
			out = out "\n    "
			width = 4
		} else if (i > 1) {
			out = out " "
			width++
		}
		out = out words[i]
		width += length(words[i])
	}
	return out
}

# Pages.  said[] has each section's text until it is written.

function paragraph(section) {
	if (said[section] != "" && said[section] !~ /\.(PP|SH[^\n]*)\n$/)
		say(section, ".PP")
}

function say(section, s) {
	said[section] = said[section] s "\n"
}

# Takes items from i on, to the last if that is said, while they are text; returns the first that is not taken.
function text_items(page, i, section, last,    s) {
	while (i <= (last ? last : n_item[page]) && item_kind[page, i] == "text") {
		s = item[page, i]
		if (s == "") {
			paragraph(section)
			i++
		} else if (s ~ /^    /)
			i = code_sample(page, i, section)
		else if (s ~ /^  [a-z_]+(, [a-z_]+)*  +[^ ]/)
			i = keyword(page, i, section)
		else if (s ~ /^- /)
			i = bullet(page, i, section)
		else {
			sub(/^ +/, "", s)
			say(section, s ~ /^\\fB/ ? emphasized(s) : prose(s))
			i++
		}
	}
	return i
}

function emphasized(s) {
	return "\\fB" escaped(substr(s, 4, length(s) - 6)) "\\fR"
}

function prose(s) {
	return roff_line(with_pages(escaped(s)))
}

function code_sample(page, i, section) {
	say(section, ".IP \"\" 4\n.EX")
	for (; i <= n_item[page] && (item[page, i] ~ /^    / || (item[page, i] == "" && item[page, i + 1] ~ /^    /)); i++)
		say(section, verbatim_line(substr(item[page, i], 5)))
	say(section, ".EE\n.PP")
	return i
}

function bullet(page, i, section) {
	say(section, ".IP \\(bu 2\n" prose(substr(item[page, i], 3)))
	for (i++; i <= n_item[page] && item[page, i] ~ /^  [^ ]/; i++)
		say(section, prose(substr(item[page, i], 3)))
	return i
}

# "  word  text", and the lines below its text.
function keyword(page, i, section,    word, column, s, to) {
	match(item[page, i], /^  [a-z_]+(, [a-z_]+)*  +/)
	column = RLENGTH
	word = substr(item[page, i], 3, RLENGTH - 2)
	sub(/ +$/, "", word)
	in_errors = 0
	to = word == "returns" ? "RETURN VALUE" : index(NOTES, " " substr(word " ", 1, match(word " ", /[, ]/) - 1) " ") ? "NOTES" : section
	if (to == "NOTES")
		say(to, ".TP 10\n" toupper(substr(word, 1, 1)) substr(word, 2))
	else if (to == section)
		say(to, ".TP\n.I " escaped(word))
	say(to, prose(substr(item[page, i], column + 1)))
	for (i++; i <= n_item[page] && item[page, i] ~ /^   +[^ ]/; i++)
		below(to, item[page, i], column)
	if (to == section)
		say(section, ".PP")
	return i
}

# An error by itself, or a value, begins a line; what is deeper goes on with the one above.
function below(to, s, column,    depth, name) {
	match(s, /^ +/)
	depth = RLENGTH
	s = substr(s, depth + 1)
	if (depth > column && match(s, /^-E[A-Z0-9]+(, -E[A-Z0-9]+)*:?( +|$)/)) {
		name = substr(s, 1, RLENGTH)
		sub(/:? *$/, "", name)
		say(to, (to == "RETURN VALUE" ? ".TP\n.B " : ".IP \\(bu 2\n") escaped(name))
		s = substr(s, RLENGTH + 1)
		in_errors = 1
	} else if (depth == column && s ~ /^(-?[0-9]|-E[A-Z]+):/)
		say(to, ".br")
	else if (depth == column && in_errors) {
		say(to, ".PP")
		in_errors = 0
	}
	say(to, s == "" ? "\\&" : prose(s))
}

function code_items(page, i, section,    n, lines, k) {
	say(section, ".PP\n.EX")
	for (; i <= n_item[page] && item_kind[page, i] == "code"; i++) {
		n = split(item[page, i], lines, "\n")
		for (k = 1; k <= n; k++)
			say(section, section == "SYNOPSIS" ? "\\fB" escaped(untabbed(lines[k])) "\\fR" : verbatim_line(lines[k]))
		if (n > 2 && item_kind[page, i + 1] == "code")
			say(section, "")
	}
	say(section, ".EE")
	return i
}

function whatis(page,    k, s) {
	for (k = 1; k <= n_what[page]; k++)
		s = s (k > 1 ? ".br\n" : "") escaped(what_names[page, k]) " \\- " escaped(what[page, k]) "\n"
	return s
}

# The declarations of a function's page are its synopsis; a header's stay where they are.
function function_page(page,    i) {
	for (i = 1; i <= n_item[page];)
		i = item_kind[page, i] == "code" ? code_items(page, i, "SYNOPSIS") : text_items(page, i, "DESCRIPTION")
}

function header_page(page,    i, p, k) {
	i = text_items(page, 1, "DESCRIPTION", overview[page])
	while (i <= n_item[page])
		i = item_kind[page, i] == "code" ? code_items(page, i, "TYPES AND MACROS") : text_items(page, i, "TYPES AND MACROS")
	for (p = page + 1; p <= n_pages && page_header[p] == page_header[page]; p++)
		for (k = 1; k <= n_what[p]; k++)
			say("FUNCTIONS", ".TP\n.BR " bold_names(what_names[p, k]) "\n" prose(what[p, k]))
}

function bold_names(s) {
	s = escaped(s)
	gsub(/, /, " \"(3), \" ", s)
	return s " (3)"
}

function write_page(page, is_header,    names, n, i, file) {
	n = split(pages_names[page], names, " ")
	file = folder "/" names[1] ".3"
	print title_line(names[1], 3) >file
	printf ".SH NAME\n%s", whatis(page) >file
	said["SYNOPSIS"] = ".B #include <component/" page_header[page] ">\n" said["SYNOPSIS"]
	write_section(file, "SYNOPSIS")
	write_section(file, "DESCRIPTION")
	write_section(file, "RETURN VALUE")
	write_section(file, "FUNCTIONS")
	write_section(file, "TYPES AND MACROS")
	write_section(file, "NOTES")
	print ".SH SEE ALSO" >file
	if (!is_header)
		print ".BR component_" escaped(page_header[page]) " (3)," >file
	print ".BR libcomponent (7)" >file
	close(file)
	print names[1] ".3" >(folder "/names")
	for (i = 2; i <= n; i++) {
		print names[i] ".3" >(folder "/names")
		print ".so man3/" names[1] ".3" >(folder "/" names[i] ".3")
		close(folder "/" names[i] ".3")
	}
}

# No empty paragraphs: troff warns of them.
function write_section(file, name,    s) {
	s = said[name]
	while (sub(/^\.PP\n/, "", s) || sub(/\.PP\n$/, "", s))
		;
	while (gsub(/\.PP\n\.PP\n/, ".PP\n", s) || gsub(/\.PP\n\.TP/, ".TP", s) || gsub(/\.PP\n\.IP/, ".IP", s) || gsub(/\.EE\n\.PP\n\.EX\n/, "", s))
		;
	if (s != "")
		printf ".SH %s\n%s", name, s >file
}

function end_of_header() {
	if (home && pending)
		pending_to_header()
}

END {
	end_of_header()
	for (page = 1; page <= n_pages && !failed; page++) {
		split("", said)
		is_header = pages_names[page] ~ /^[^ ]*\.h( |$)/
		if (of_others[page])
			continue
		if (is_header)
			header_page(page)
		else
			function_page(page)
		write_page(page, is_header)
	}
	exit failed
}
