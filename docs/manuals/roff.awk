# roff.awk - what functions.awk and overview.awk share: text as roff wants it.
#
# A line that begins with '.' or "'" is a command to roff, a backslash is an escape, and '-' and some others
# print as characters that cannot be pasted into a shell.
# Tests: tests/project/manuals.t.

# Plain text, anywhere in a line.
function escaped(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	gsub(/'/, "\\(aq", s)
	gsub(/`/, "\\(ga", s)
	gsub(/\^/, "\\(ha", s)
	gsub(/~/, "\\(ti", s)
	return s
}

# A line of it.
function roff_line(s) {
	return s ~ /^\./ ? "\\&" s : s
}

# A function that has a page, but not this one, is named with its section.
function with_pages(s,    out, name) {
	while (match(s, /component_[a-z0-9_]+\(\)/)) {
		name = substr(s, RSTART, RLENGTH - 2)
		out = out substr(s, 1, RSTART - 1)
		if (name in has_page)
			out = out "\\fB" name "\\fR(" (has_page[name] == page ? ")" : "3)")
		else
			out = out name "()"
		s = substr(s, RSTART + RLENGTH)
	}
	return out s
}

# Tabs as blanks, for what is shown as it stands.
function untabbed(s,    at) {
	while ((at = index(s, "\t")) > 0)
		s = substr(s, 1, at - 1) substr("        ", 1, 8 - (at - 1) % 8) substr(s, at + 1)
	return s
}

function verbatim_line(s) {
	return roff_line(escaped(untabbed(s)))
}

# The first line of a page.  Without a date: the same sources make the same page.
function title_line(name, section) {
	return ".TH \"" escaped(toupper(name)) "\" " section " \"\" \"libcomponent " version "\" \"libcomponent\""
}
