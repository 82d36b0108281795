# A shell script that forks, pipes, redirects and waits. What it prints is in `expected` beside it, and the same on Linux:
#     busybox sh script.sh | diff expected -
B=/bin/busybox
cd /tmp && rm -rf shell && mkdir shell && cd shell || exit 1

echo "-- pipelines"
for i in 1 2 3 4 5; do echo line $i >> a; done
$B sort -r a | $B head -2
$B cat a | $B grep -v 3 | $B wc -l
$B yes | $B head -100000 | $B wc -l
$B seq 1 300 | $B xargs -n 10 $B echo | $B wc -l
echo "a b c" | { read first rest; echo "$rest"; }
$B expr 6 '*' 7
$B awk 'BEGIN { for (i = 0; i < 5; i++) s += i; print s }'

echo "-- copies"
$B seq 1 20000 > big
$B md5sum big
$B cp big copy && $B cmp big copy && echo same
$B dd if=big of=part bs=1000 count=3 skip=1 2> /dev/null && $B wc -c part
$B gzip -c big > big.gz && $B gunzip -c big.gz | $B md5sum
$B diff a big | $B head -3
$B cut -c1-3 big | $B uniq | $B wc -l

echo "-- names"
$B ln -s big soft && $B ln big hard && $B readlink soft
$B stat -c '%h %s %F' hard soft
$B mkdir -p x/y/z && echo deep > x/y/z/f && $B find x | $B sort
$B tar cf t.tar x a && $B tar tf t.tar && $B mkdir out && $B tar xf t.tar -C out && $B cat out/x/y/z/f
$B mv x/y x2 && ls x2 && $B rm -r x x2
( cd out/x && pwd )
$B chmod 600 a && $B stat -c %a a
$B truncate -s 100 part && $B stat -c %s part
[ -L soft ] && [ ! -e nothing ] && echo *.gz

echo "-- descriptors"
exec 3> three; echo hi >&3; exec 3>&-
exec 4< three; read word <&4; echo $word
cat <<END | $B rev
heredoc
END
$B mkfifo fifo
( $B cat fifo > through ) & $B seq 1 1000 > fifo; wait; $B wc -l < through

echo "-- processes"
$B sh -c 'exit 7'; echo $?
trap 'echo caught' TERM; kill -TERM $$; $B sleep 0
( $B sleep 50 & p=$!; kill $p; wait $p; echo $? ) 2> /dev/null
$B timeout -s KILL 1 $B sleep 50; echo $?
for i in 1 2 3 4 5 6 7 8; do ( $B seq 1 3000 | $B sort -n | $B tail -1 ) & done; wait
i=0; while [ $i -lt 50 ]; do $B true & i=$((i + 1)); done; wait; echo $i
( ( echo grandchild ) & wait ) & wait

cd .. && $B rm -rf shell && [ ! -e shell ] && echo end
