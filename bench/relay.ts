/**
 * A TCP relay that makes a server distant. `relay.ts PORT TARGET DELAY` passes what comes in at
 * 127.0.0.1:PORT to 127.0.0.1:TARGET, and what comes back, each DELAY milliseconds later. All that
 * is under way waits side by side, so it keeps the order and the bandwidth; only the handshake of
 * TCP takes no time. At SIGTERM it prints what the delays really were, as one line of JSON.
 */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { createHistogram } from 'node:perf_hooks'

const [port = 0, target = 0, delay = 0] = process.argv.slice(2).map(Number)

/** What is under way, by its time of arrival in milliseconds; the delay is the same for all. */
const underWay: { since: number; pass: () => void }[] = []
const delays = createHistogram()
let timer: NodeJS.Timeout | undefined

function send(pass: () => void): void {
  underWay.push({ since: performance.now(), pass })
  arrive()
}

/** Passes on what has been under way for long enough. Timers have milliseconds, so each arrival helps. */
function arrive(): void {
  const now = performance.now()
  for (let [first] = underWay; first && first.since + delay <= now; [first] = underWay) {
    underWay.shift()
    delays.record(Math.max(1, Math.round((now - first.since) * 1_000)))
    first.pass()
  }
  const [first] = underWay
  if (!first || timer) return
  timer = setTimeout(
    () => {
      timer = undefined
      arrive()
    },
    first.since + delay - now,
  )
}

function forward(from: Socket, to: Socket): void {
  from.setNoDelay()
  from.on('data', (chunk) => {
    send(() => {
      if (to.write(chunk) || to.destroyed) return
      from.pause()
      to.once('drain', () => from.resume())
    })
  })
  from.on('end', () => send(() => to.end()))
  from.on('error', () => to.destroy())
  from.on('close', () => send(() => to.destroy()))
}

const server = createServer({ allowHalfOpen: true }, (client) => {
  const upstream = connect({ port: target, host: '127.0.0.1', allowHalfOpen: true })
  forward(client, upstream)
  forward(upstream, client)
})
server.listen(port, '127.0.0.1')
await once(process, 'SIGTERM')
const { user, system } = process.cpuUsage()
const { count, mean, max } = delays
const report = {
  mean: mean / 1_000,
  p99: delays.percentile(99) / 1_000,
  max: max / 1_000,
  processor: (user + system) / count,
}
process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit())
