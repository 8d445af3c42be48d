# overview.awk - libcomponent(7), from a frame that says which parts of the documents it has.
#
#   awk -v version=1.2.3 -v top=SOURCE -v docdir=DIR -f roff.awk -f overview.awk libcomponent.7.in component_*.h.3
#
# What the documents say is written nowhere else.  In the frame, which is roff otherwise,
#
#   @first FILE              is the first paragraph of a document
#   @section FILE HEADING    is all between a heading of it and the next one
#   @tables FILE HEADING     the tables of that alone
#   @file FILE               a file as it stands
#   @headers                 what the pages of the headers (functions.awk) have for a title
#
# A row of a table is a paragraph: its first cell hangs in front, its last is the text, and what is between
# stands in parentheses, behind the words of its heading.
# What would surprise: a heading that is not there ends it with an error.
# Tests: tests/project/manuals.t.

BEGIN {
	frame = ARGV[1]
	while ((getline line <frame) > 0 && !failed)
		frame_line(line)
	exit failed
}

function frame_line(line,    word) {
	split(line, word, " ")
	if (word[1] == "@headers")
		headers()
	else if (word[1] == "@file")
		whole(top "/" word[2])
	else if (word[1] ~ /^@(first|section|tables)$/)
		part(word[1], top "/" word[2], substr(line, index(line, word[2]) + length(word[2]) + 1))
	else {
		gsub(/@docdir@/, escaped(docdir), line)
		gsub(/@title@/, title_line("libcomponent", 7), line)
		print line
	}
}

function headers(    i, line) {
	for (i = 2; i < ARGC; i++) {
		getline line <ARGV[i]
		getline line <ARGV[i]
		getline line <ARGV[i]
		print ".TP\n.BR " substr(line, 1, index(line, " ") - 1) " (3)\n" substr(line, index(line, " \\- ") + 4)
	}
}

function whole(file,    line) {
	print ".EX"
	while ((getline line <file) > 0)
		print verbatim_line(line)
	print ".EE"
	close(file)
}

# What of a document is asked for, by its kind of line.
function part(kind, file, heading,    line, found) {
	after_blank = rows = 0
	while ((getline line <file) > 0) {
		if (line ~ /^#/) {
			if (found && kind != "@first")
				break
			sub(/^#+ /, "", line)
			found = kind == "@first" || line == heading
		} else if (found && kind == "@first" && line == "" && said_some)
			break
		else if (found && (kind != "@tables" || line ~ /^\|/))
			document_line(line, file)
		else
			rows = 0
	}
	close(file)
	said_some = 0
	if (!found) {
		print frame ": " file " has no heading '" heading "'" >"/dev/stderr"
		failed = 1
	}
}

function document_line(line, file) {
	if (line == "") {
		after_blank = 1
		rows = 0
		return
	}
	if (line ~ /^```/) {
		fence(file)
	} else if (line ~ /^\|/)
		row(line)
	else if (match(line, /^(- |[0-9]+\. )/)) {
		print ".IP " (line ~ /^-/ ? "\\(bu" : substr(line, 1, RLENGTH - 1)) " 3"
		print marked(substr(line, RLENGTH + 1))
	} else {
		if (after_blank && said_some)
			print ".PP"
		sub(/^ +/, "", line)
		print marked(line)
	}
	after_blank = 0
	said_some = 1
}

function fence(file,    line) {
	print ".IP \"\" 4\n.EX"
	while ((getline line <file) > 0 && line !~ /^```/)
		print verbatim_line(line)
	print ".EE"
}

# The first row is the table's heading, the second a rule.
function row(line,    n, cells, i, between) {
	gsub(/\\\|/, "\001", line)
	n = split(line, cells, "|") - 1
	for (i = 2; i <= n; i++) {
		gsub(/^ +| +$/, "", cells[i])
		gsub(/\001/, "|", cells[i])
		if (rows == 0)
			column_heading[i] = cells[i]
		else if (i > 2 && i < n && cells[i] != "")
			between = between (between == "" ? "" : ", ") column_heading[i] " " cells[i]
	}
	if (++rows > 2) {
		print ".TP\n" marked(cells[2] (between == "" ? "" : " (" between ")"))
		print cells[n] == "" ? "\\&" : marked(cells[n])
	}
}

# Backquotes are bold, two asterisks too; of a link its text is left.
function marked(s,    n, parts, i, out) {
	while (match(s, /\[[^]]*\]\([^)]*\)/))
		s = substr(s, 1, RSTART - 1) unlinked(substr(s, RSTART, RLENGTH)) substr(s, RSTART + RLENGTH)
	gsub(/\*\*/, "`", s)
	n = split(s, parts, "`")
	for (i = 1; i <= n; i++)
		out = out (i % 2 == 0 ? "\\fB" escaped(parts[i]) "\\fR" : escaped(parts[i]))
	return roff_line(out)
}

function unlinked(s) {
	return substr(s, 2, index(s, "](") - 2)
}
