# Compares what `supervise` printed on two systems: awk -f table.awk LINUX OURS. Prints the counts, and each case that Linux passes and ours does
# not, with the last lines that it printed on ours, if `lines` is set to how many.
FNR == 1 { system_number++ }
$1 == "case" {
	current = $2
	result = $3 ($4 == "" ? "" : " " $4)
	outcome[system_number, current] = result
	if (system_number == 1) {
		names[++count] = current
		if (result == "exit 0") passed++
	}
	next
}
$1 == "|" && system_number == 2 { said[current, ++spoken[current]] = $0 }
END {
	for (number = 1; number <= count; number++) {
		name = names[number]
		if (outcome[1, name] != "exit 0") continue
		if (outcome[2, name] == "exit 0") { both++; continue }
		differing[++differences] = name
	}
	printf "%d cases; Linux passes %d; of these Ceasefire passes %d\n", count, passed, both
	for (number = 1; number <= differences; number++) {
		name = differing[number]
		printf "%-50s %s\n", name, ((2, name) in outcome) ? outcome[2, name] : "not reached"
		for (line = spoken[name] - lines + 1; line <= spoken[name]; line++)
			if (line > 0) print "    " said[name, line]
	}
}
