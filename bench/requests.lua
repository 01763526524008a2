-- Sends the requests of a file, in random order, and writes the result as one line of JSON.
-- wrk … -- FILE [KEYS] [strict]   Each line is the path of a GET, or the path of a POST, a tab and
-- its body. With KEYS each POST has its own Idempotency-Key, which begins with KEYS; `-` means
-- none. With `strict` every status is compared, which slows wrk down, so it is for the warm-up.

local requests = {}
local thread
local keys
local sent = 0
-- Global, so that `done` can read them from the thread.
wrong = 0
reads = 0
before = 0

function setup(started)
  thread = started
end

function init(args)
  math.randomseed(os.time())
  keys = args[2] ~= '-' and args[2] or nil
  -- Prepared before the start, so that each request only needs a choice.
  for line in io.lines(args[1]) do
    local path, body = line:match('^([^\t]*)\t?(.*)$')
    if body == '' then
      requests[#requests + 1] = { text = wrk.format('GET', path), reads = 1 }
    else
      local headers = { ['Content-Type'] = 'application/json' }
      for name, value in pairs(wrk.headers) do headers[name] = value end
      if keys then headers['Idempotency-Key'] = '@' end
      local text = wrk.format('POST', path, headers, body)
      local head, tail = text:match('^(.*Idempotency%-Key: )@(.*)$')
      requests[#requests + 1] = { text = text, head = head, tail = tail, reads = 0 }
    end
  end
  if args[3] == 'strict' then
    function response(status)
      if status ~= 200 and status ~= 201 then wrong = wrong + 1 end
    end
  end
  before = os.clock()
end

function request()
  local chosen = requests[math.random(#requests)]
  reads = reads + chosen.reads
  if not chosen.head then return chosen.text end
  sent = sent + 1
  return chosen.head .. keys .. sent .. chosen.tail
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"reads":%d,"seconds":%f,"p50":%f,"p99":%f,"bytes":%d,"load":%f,"failed":%d,"wrong":%d}\n',
    summary.requests,
    thread:get('reads'),
    summary.duration / 1e6,
    latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3,
    summary.bytes,
    os.clock() - thread:get('before'), -- seconds of processor time
    e.connect + e.read + e.write + e.timeout,
    math.max(e.status, thread:get('wrong'))
  ))
end
