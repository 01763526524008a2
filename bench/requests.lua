-- Sends the requests of a file, in random order, and writes the result as one line of JSON.
-- wrk … -- FILE METHOD [STATUS]   Each line is the path of a GET, or the body of a POST.
-- With STATUS every answer is compared with it, which slows wrk down: for warming up.

local requests = {}
local thread
wrong = 0 -- global, so that `done` can ask the thread for it

function setup(started)
  thread = started
end

function init(args)
  math.randomseed(os.time())
  local file, method, status = args[1], args[2], tonumber(args[3])
  -- Made before the start: nothing but a choice is left to do for each request.
  for line in io.lines(file) do
    requests[#requests + 1] = method == 'POST' and wrk.format(method, nil, nil, line)
      or wrk.format(method, line)
  end
  if status then
    function response(answered)
      if answered ~= status then
        wrong = wrong + 1
      end
    end
  end
end

function request()
  return requests[math.random(#requests)]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"seconds":%f,"p99":%f,"failed":%d,"wrong":%d}\n',
    summary.requests,
    summary.duration / 1e6,
    latency:percentile(99) / 1e3,
    e.connect + e.read + e.write + e.timeout,
    math.max(e.status, thread:get('wrong'))
  ))
end
