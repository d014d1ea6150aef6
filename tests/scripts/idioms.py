"""Scripts for single idioms: preflight must find the commands that bash starts."""

from __future__ import annotations

IDIOMS: dict[str, str] = {
    "quoted block, unquoted": (
        'ARGS="\n  --num-layers 32 \\\n  --hidden-size 4096 \\\n"\ntorchrun --nproc_per_node 8 pretrain_gpt.py $ARGS\n'
    ),
    "block without continuations": 'ARGS="\n  --num-layers 32\n  --bf16\n"\ntorchrun pretrain_gpt.py $ARGS --lr 1e-4\n',
    "single quotes": "ARGS='--a 1\n --b $X'\ntorchrun pretrain_gpt.py $ARGS 'c d'\n",
    "quotes that close and reopen": (
        'LOG="x"\nARGS="--log_dir="msrun_log" --y "$LOG""\n'
        'msrun --worker_num 8 pretrain_gpt.py $ARGS --log_dir="a b"/c\n'
    ),
    "escapes in double quotes": 'A="a\\"b\\$c\\\\d\\e"\ntorchrun t.py "$A" "\\`x"\n',
    "escapes outside quotes": "torchrun t.py a\\ b \\$X \\\n  --next\\=1\n",
    "comments between continued lines": 'torchrun t.py --a 1 `# one` \\\n  `# two` --b 2 \\\n  "x`# three`y" --c\n',
    "named elements": (
        'T=2\ndeclare -A C=([tp]=$T [pp]="3" ["x y"]=4 [p]=a/b)\n'
        'torchrun t.py ${C[tp]} "${C[pp]}" ${C["x y"]} ${C[p]}/c\n'
    ),
    "named elements that are added and replaced": (
        "declare -A C=([tp]=1 [pp]=2)\nC+=([cp]=3 [tp]=4)\n"
        'if [[ -v C[pp] && -v C[cp] ]]; then torchrun t.py "${C[tp]}" "${C[pp]}" "${C[cp]}"; fi\n'
    ),
    "a named element whose key is a variable": (
        'M=7b\ndeclare -A C=([$M]=1)\nif [[ -v C[7b] ]]; then torchrun t.py "${C[7b]}"; fi\n'
    ),
    "a here-document as a value": 'X=2\nA=$(cat <<EOF\n--a 1\n--b $X\nEOF\n)\ntorchrun t.py $A "$A"\n',
    "an array in a here-document": (
        "A=(\n--nproc_per_node 2\n--nnodes 1\n)\nB=(--a '1 2')\n"
        'read -r -d \'\' C <<EOF\ntorchrun ${A[@]} t.py ${B[@]} "${B[@]}" --n ${#B[@]}\nEOF\nbash -c "$C"\n'
    ),
    "a quoted here-document as a value": "A=$(cat <<'EOF'\n--a $X\nEOF\n)\ntorchrun t.py $A\n",
    "ansi quotes": "torchrun t.py $'a\\tb' $'it\\'s'\n",
    "quoted expansion keeps blanks": 'D="a b"\ntorchrun t.py --data "$D" --split $D\n',
    "empty unquoted vanishes": 'E=""\nF=\ntorchrun t.py --a $E --b "$E" $F --c\n',
    "words joined": 'A=x\nB="y z"\ntorchrun t.py $A$B.c ${A}_$A.log --f=${A}/$B "$A"-$A\n',
    "arithmetic": (
        "G=8\nN=2\nW=$(($G*$N))\nX=$((W + G/3 - 1 << 1))\n"
        "torchrun t.py $W $X $((W % 5)) $(( (G>N) ? G : N )) $((010 + 0x10)) $((-7/2)) $((2**5))\n"
    ),
    "arithmetic in a default": (
        'A=8\nR=3\nB=${B:-$((A*R))}\nC="${C:-$((A / R))}"\nD=${D:=$((A + $R - 1))}\n'
        'torchrun t.py $B "$C" $D ${E:-$((A%R))} "${F:-x$((A - R))y}" ${G-$(( A > R ? A : R ))}\n'
    ),
    "arithmetic that begins with a bracket": (
        'A=8\nR=3\nB=$(((A + R - 1) / R))\nC="$(((A + $R) * (${R} - 1)))"\nD=$(((A)))\n'
        "torchrun t.py $B $C $D $(((A+1)*2)) $((((A))+1)) $(( (A) - (R) ))\n"
    ),
    "arithmetic that begins with a bracket, in a default": (
        'A=8\nR=3\nB="${B:-$(((A + R - 1) / R))}"\nC=${C:-$(((A*2)))}\n'
        'torchrun t.py "$B" $C "${D:-$(((A + 1) * (R - 1)))}" ${E:-$(((A+1)*(R+1)))}\n'
    ),
    "arithmetic of an unset name in it": "A=3\nA=$((A+1))\ntorchrun t.py $A $((A*A))\n",
    "let and expr": "A=4\nB=`expr $A + 3`\nC=$(expr 6 \\* 7)\ntorchrun t.py $B $C\n",
    "expr on texts": (
        "M=llama-7b.tar\nA=$(expr $M : '.*-\\([0-9]*\\)b')\n"
        "torchrun t.py $A $(expr -7 % 3) $(expr \\( $A + 1 \\) \\* 2 - 1) $(expr length $M)\n"
    ),
    "arithmetic that sets": (
        "I=5\n((I++))\n((J = I * 2, K = 3))\nlet L=I+1 'M = L * 2'\nN=0\nfor x in a b; do ((N += 2)); done\n"
        "torchrun t.py $I $J $K $L $M $N\n"
    ),
    "arithmetic with bases": "S=08\ntorchrun t.py $((10#$S + 1)) $((16#ff)) $((-7 % 3)) $[3 + 4] $((1 ? 2 : 1 / 0))\n",
    "seq": "torchrun t.py --n 1 $(seq 2 2 6) --k $(seq 3)\n",
    "printf into a variable": 'printf -v A "[%s]" "1, 2"\ntorchrun t.py --n "$A"\n',
    "a sign behind a variable": 'N=1\nM=2\nA=(--f [0]*$N+[1]*$M)\ntorchrun t.py "${A[@]}"\n',
    "echo": 'A=$(echo "x  y" z)\ntorchrun t.py --n "$A" $(echo 1 2)\n',
    "defaults": 'A=${A:-8}\nE=""\ntorchrun t.py $A ${B:-x y} ${E:-d} "${E-e}" ${C:="c"} $C ${A:+set}\n',
    "quotes in a default": (
        "A=${A:-'a'}\nB=${B:-'b'\"c\"d}\nC=\"${C:-'c'}\"\nD=\"${D:-\"d\"}\"\nE=${E:-\"${Z:-'9'}\"}\nF=${F:='f g'}\n"
        "torchrun t.py $A $B $C $D $E \"$F\" ${G:-'g'} \"${H:-'h'}\" ${I:-$'i'} \"${J:-a'b'c}\" ${K:-\"\\$HOME\"}\n"
    ),
    "commands in a quoted default": (
        'A=${A:-"b_$(echo a)"}\nB="${B:-"$((1+2))_b"}"\nC="$(echo ${C:-\'c\'})"\nD=$(echo "${D:-\'d\'}")\n'
        'torchrun t.py $A $B $C $D "p${E:-"q${Z:-\'r\'}"}s"\n'
    ),
    "quotes in a pattern": 'Y=abc\nX=${Y%\'c\'}\nZ="${Y%\'c\'}"\nW="${Y%"c"}"\ntorchrun t.py $X $Z $W ${Y/"b"/x}\n',
    "nested defaults": 'X=${ONE:-${TWO:-three}}\ntorchrun t.py $X ${Y:-"a b"} "${Z:-q}"\n',
    "substrings and patterns": (
        "P=/a/b/model.tar.gz\ntorchrun t.py ${P##*/} ${P%.gz} ${P%%.*} ${P#*/} ${P:1:3} ${P: -2} ${P/a/A} "
        "${P//\\//:} ${#P} ${P^^}\n"
    ),
    "continuation without a blank": "V=3\ntorchrun t.py --a 1\\\n--b 2 --c ${V}\\\n--d\\\n --e\n",
    "arrays": (
        'A=(\n  --num-layers 32  # layers\n  # a comment\n  --name "a b"\n)\n'
        'torchrun t.py "${A[@]}" ${A[@]} ${A} ${A[1]} ${#A[@]} ${A[-1]}\n'
    ),
    "array grows": 'A=(--a 1)\nA+=(--b "2 3")\nA+=(--c)\nA=("${A[@]}" --d)\ntorchrun t.py "${A[@]}" "${A[*]}"\n',
    "empty in quotes": (
        'f() { torchrun t.py "$1" "${2}" "$3$4"; }\nf a\nL=()\nB="${L[@]}"\ntorchrun u.py "$B" "${B}x"\n'
    ),
    "empty array": 'A=()\ntorchrun t.py "${A[@]}" --x\n',
    "array of a string": 'A="--a 1 --b 2"\ntorchrun t.py ${A[@]}\n',
    "slices of arrays": (
        'A=(--a 1 --b "2 3" --c)\nL=2\ntorchrun t.py "${A[@]:2}" ${A[@]:1:2} "${A[@]: -1}" "${A[*]:3}" "${A[@]:9}" '
        "${A[@]:L-1:1}\n"
        'S=hello\ntorchrun u.py "${S[@]:2}" "${A[@]/-/+}"\n'
    ),
    "slices of arguments": 'set -- 8 x.json --a "b c" --d\ntorchrun t.py "${@:3}" ${@:2:1} "${@: -1}" "${*:3:2}"\n'
    'f() { torchrun --nproc_per_node "$1" t.py "${@:2}"; }\nf 4 --x "y z"\n',
    "braces": (
        "torchrun t.py --d /x/{a,b}.c {1..3} {3..1} {08..10} {a..c} x{1,2}{y,z} {1..7..3} {a} {,b} p{q,{r,s}}t "
        '"{a,b}" --e={1,2}\nL=(--{a,b} 1)\n'
        'torchrun u.py "${L[@]}"\nfor i in {1..2}; do torchrun v.py $i; done\n'
    ),
    "names of a function's own": (
        "N=1\nf() { local N=$1 M; N=$((N+1)); M=3; K=4; torchrun t.py $N $M; }\nf 5\ntorchrun u.py $N $M $K\n"
    ),
    "options of the script": (
        'TP=2\nwhile getopts "t:x" o; do case $o in t) TP=$OPTARG;; x) X=--x;; *) exit 1;; esac; done\n'
        "shift $((OPTIND - 1))\n"
        'torchrun t.py --tp $TP $X "$@"\n'
    ),
    "words of the script": (
        'PP=1\nwhile [[ $# -gt 0 ]]; do case $1 in --pp) PP=$2; shift 2;; *) MORE+=("$1"); shift;; '
        "esac; done\n"
        'for a in "$@"; do case $a in q=*) Q=${a#*=};; esac; done\ntorchrun t.py --pp $PP "${MORE[@]}" $EXTRA_ARGS\n'
    ),
    "a default of the script": 'case "$1" in big) L=80;; small) L=8;; *) L=32;; esac\ntorchrun t.py --num-layers $L\n',
    "indices": 'H=(a b c)\ntorchrun t.py ${#H[@]} ${!H[@]}\nfor i in "${!H[@]}"; do torchrun r.py $i ${H[$i]}; done\n',
    "plus equals": 'A="--a 1"\nA+=" --b 2"\nA="$A --c 3"\ntorchrun t.py $A\n',
    "last assignment wins": "A=1\ntorchrun t.py --a $A\nA=2\ntorchrun t.py --a $A\n",
    "comments": "# torchrun no.py\nA=1 # B=2\ntorchrun t.py --a $A#b # --c\n",
    "pipes and redirections": (
        "A=1\ntorchrun t.py --a $A 2>&1 | tee log.txt\n"
        "torchrun u.py --b > out.txt 2> err.txt < /dev/null &\nwait\n"
        "torchrun v.py && torchrun w.py; torchrun x.py || exit 1\n"
    ),
    "if with a known condition": (
        'A=2\nif [ "$A" = 2 ]; then B="--two"; elif [ $A -gt 2 ]; then B="--more"; else B="--less"; fi\n'
        "torchrun t.py $B\n"
    ),
    "if with patterns and numbers": (
        "M=llama3\nif [[ $M == llama* && 3 -lt 4 ]]; then X=--rope; fi\nif ((4 > 5)); then X=--no; fi\n"
        "torchrun t.py $X\n"
    ),
    "flag behind a test": 'V=None\nC=1\nif [ "$V" != None ]; then A="$A --v $V"; fi\n[ -n "$C" ] && A="$A --c $C"\n'
    '[[ -z $C ]] && A="$A --no"\ntorchrun t.py $A\n',
    "case": (
        "S=small\ncase $S in\n  big) L=80;;\n  small|tiny) L=8;;\n  *) L=1;;\nesac\ntorchrun t.py --num-layers $L\n"
    ),
    "for over words": "for TP in 1 2 4; do\n  torchrun t.py --tp $TP\ndone\n",
    "for over an array": 'S=(a "b c")\nA=\nfor s in "${S[@]}"; do A="$A --s-$s"; done\ntorchrun t.py "$A"\n',
    "functions": 'launch() {\n  local n=$1; shift\n  torchrun --nproc_per_node $n t.py "$@"\n}\nlaunch 8 --a "x y"\n'
    "function two { torchrun u.py $1 $# ; }\ntwo --q r\n",
    "function that returns": "f() { A=--one; return 0; A=--two; }\nf\ntorchrun t.py $A\n",
    "subshell": "A=1\n(A=2; torchrun t.py $A)\ntorchrun u.py $A\n",
    "group": "{ A=2; torchrun t.py $A; } 2>&1\ntorchrun u.py $A\n",
    "eval": 'C="torchrun t.py --a \'x y\'"\nB="--b 1"\neval $C $B\neval "$C $B"\n',
    "command in a variable": 'C="torchrun --nproc_per_node 2"\nT=t.py\n$C $T --a 1\n',
    "bash -c": 'export A=1\nC="torchrun t.py --a"\nbash -c "$C 2"\nsh -c \'torchrun u.py --b "c d"\'\n',
    "set arguments": 'set -- --a "b c"\ntorchrun t.py "$@" $#\nset -e\n',
    "here-document": "cat > conf.txt <<EOF\ntorchrun no.py --x\nEOF\ntorchrun t.py --a\n",
    "read of a here-document": 'N=3\nread -r -d "" ARGS <<EOF\n--num-layers $N\n--bf16\nEOF\ntorchrun t.py $ARGS\n',
    "bash reads a here-document": "N=3\nbash <<EOF\ntorchrun t.py --n $N \\\n  --m\nEOF\n",
    "prefix assignments": "X=1\nX=2 torchrun t.py --x $X\nenv Y=1 torchrun u.py\n",
    "python launchers": (
        "python -m torch.distributed.launch --nproc_per_node 8 pretrain_gpt.py --a\npython3 -u train.py --b\n"
    ),
    "srun in front": "srun -N2 --ntasks-per-node=1 torchrun --nnodes 2 t.py --a\n",
    "exit": "torchrun t.py\nexit 0\ntorchrun no.py\n",
    "unknown word": 'torchrun t.py --name "$(date +%s)" --next 1\n',
    "letters of other scripts": 'D="/数据/集"\ntorchrun t.py --data ${D}/训练 --n "é" $D # 注释\n',
    "tabs and blank lines": 'A="\n\t--a\t1\n\n\t--b 2\n"\ntorchrun t.py $A\t--c\n',
    "trailing backslash at the end": "torchrun t.py --a 1 \\\n",
    "glued options": "torchrun --nproc-per-node=8 t.py --a=1 --b=${X:-2}\n",
    "indirect": "NAME=VALUE\nVALUE=7\ntorchrun t.py ${!NAME}\n",
    "true and false": "true && A=1\nfalse && A=2\nfalse || B=3\ntorchrun t.py $A $B\n",
    "brace that is no group": "torchrun t.py --a {x} --json '{\"a\": 1}'\n",
}
