socket=$1
shift
keys= bytes= hot= share= requests=
for word in "$@"; do
    case $word in
        *=*[!0-9]*) known=false ;;
        keys=[1-9]* | bytes=[1-9]* | hot=[1-9]* | share=[0-9]* | requests=[1-9]*) known=true ;;
        *) known=false ;;
    esac
    $known || {
        echo "redis-hot: $word: expected keys=, bytes=, hot=, share= or requests=N" >&2
        exit 2
    }
    eval "${word%%=*}=${word#*=}"
done
for name in keys bytes hot share requests; do
    eval "[ -n \"\$$name\" ]" || { echo "redis-hot: expected $name=N" >&2; exit 2; }
done
[ "$hot" -le "$keys" ] && [ "$share" -le 100 ] || {
    echo "redis-hot: hot=$hot, share=$share: expected at most keys=$keys, and 100" >&2
    exit 2
}
functions='#!lua name=hot
redis.register_function("fill", function(_, args)
    local value = string.rep("x", tonumber(args[2]))
    for key = 0, tonumber(args[1]) - 1 do
        redis.call("SET", "key:" .. key, value)
    end
end)
redis.register_function("read", function(_, args)
    local number, keys = tonumber(args[1]), tonumber(args[2])
    local hot, share = tonumber(args[3]), tonumber(args[4])
    local spot = math.floor(number / 100)
    local key = spot % keys
    if number % 100 < share then
        key = keys - 1 - spot % hot
    end
    return redis.call("GET", "key:" .. key)
end)'
redis-cli -e -s "$socket" function load "$functions" > /dev/null
redis-cli -e -s "$socket" fcall fill 0 "$keys" "$bytes" > /dev/null
exec redis-benchmark -s "$socket" --csv -c 10 -r 1000000000 -n "$requests" \
    fcall read 0 __rand_int__ "$keys" "$hot" "$share"
