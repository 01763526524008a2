/** The queue keeps its promises whatever calls come, and whatever becomes of sessions, deadlines and statements. */
import { Session } from 'node:inspector'
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import { promiseHooks } from 'node:v8'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Use } from '../../../db/plan.ts'
import { drain, turns } from './sessions.ts'
import { NAMES, type Outcome, type PLANS, World } from './world.ts'

const RUNS = 200
const SEED = Number(process.env.DIFFERENTIAL_SEED)

/** More promises than a run makes in a turn of the event loop. */
const ENDLESS = 200_000

const pauseReally = timers.setTimeout
let world: World

/** Ends what takes no turn of the event loop, and fails its run: no time-out would. Returns the end of the watch. */
function watchTurns(): () => void {
  const inspector = new Session()
  inspector.connect()
  let promises = 0
  const unwatch = promiseHooks.onInit(() => {
    if (promises++ === 0) setImmediate(() => (promises = 0))
    if (promises !== ENDLESS) return
    world.fail(new Error('Not so: what a session does takes turns of the event loop'))
    inspector.post('Runtime.terminateExecution')
  })
  return () => {
    unwatch()
    inspector.disconnect()
  }
}
let unwatchTurns: () => void

beforeAll(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.spyOn(Math, 'random').mockReturnValue(0.5) // so that a seed repeats its runs
  timers.setTimeout = ((milliseconds: number) => world.pause(milliseconds)) as never
  syncBuiltinESMExports()
  unwatchTurns = watchTurns()
})

afterAll(() => {
  unwatchTurns()
  timers.setTimeout = pauseReally
  syncBuiltinESMExports()
  vi.restoreAllMocks()
  vi.useRealTimers()
})

async function pass(milliseconds: number): Promise<void> {
  for (let passed = 0; passed < milliseconds; passed++) {
    vi.advanceTimersByTime(1)
    await drain()
  }
}

type Command = fc.AsyncCommand<World, World>

/** Returns commands that run so with a value, where they may. */
function command<Value>(
  name: string,
  values: fc.Arbitrary<Value>,
  run: (world: World, value: Value) => unknown,
  mayRun: (world: World) => boolean = () => true,
): fc.Arbitrary<Command> {
  return values.map((value) => ({
    check: mayRun,
    async run(world) {
      await run(world, value)
      await world.check()
    },
    toString: () => `${name} ${JSON.stringify(value)}`,
  }))
}

const one = <Item>(items: readonly Item[], index: number) => items[index % items.length] as Item
const indexes = fc.nat(1_000)
const unsettled = (world: World) => world.calls.filter(({ state }) => state !== 'settled')
const moving = (world: World) => world.running.filter((running) => !world.frozen.has(running))
const borrowed = (world: World) => world.calls.filter(({ session }) => session)

const planNames = fc.constantFrom<keyof typeof PLANS>('lookUps', 'named', 'pages', 'inserts')
const names = fc.array(fc.constantFrom(...NAMES), { minLength: 1, maxLength: 8 })
const calls = fc.record({ plan: planNames, names, haveOneDeadline: fc.boolean() })
const outcomes = fc.constantFrom<Outcome>(
  'success',
  'success',
  'no effect',
  'unknown effect',
  'rejected row',
  'rejected row',
)

/** The commands, and how often each comes beside the others. */
const commands: [times: number, command: fc.Arbitrary<Command>][] = [
  [
    40,
    command('call', calls, (world, { plan, names, haveOneDeadline }) => {
      const shared = haveOneDeadline ? world.newDeadline() : undefined
      for (const name of names) world.call(plan, name, shared)
    }),
  ],
  [
    1,
    command('call often', fc.constantFrom(400, 700), (world, count) => {
      for (let made = 0; made < count; made++) world.call('crowd', 'a')
    }),
  ],
  [
    10,
    command('borrow', fc.constantFrom<Use>('read', 'write', 'readiness'), (world, use) =>
      world.borrow(use),
    ),
  ],
  [
    15,
    command(
      'release',
      indexes,
      (world, index) => world.release(one(borrowed(world), index)),
      (world) => borrowed(world).length > 0,
    ),
  ],
  [
    80,
    command(
      'end',
      fc.tuple(indexes, outcomes),
      (world, [index, outcome]) => world.end(one(moving(world), index), outcome),
      (world) => moving(world).length > 0,
    ),
  ],
  [
    2,
    command(
      'freeze',
      indexes,
      (world, index) => void world.frozen.add(one(moving(world), index)),
      (world) => moving(world).length > 0,
    ),
  ],
  [
    10,
    command(
      'give up',
      indexes,
      (world, index) => world.giveUp(one(unsettled(world), index)),
      (world) => unsettled(world).length > 0,
    ),
  ],
  [
    15,
    command(
      'leave a search',
      fc.tuple(indexes, indexes),
      (world, [index, input]) => world.leaveSearch(one(world.searches, index), input),
      (world) => world.searches.length > 0,
    ),
  ],
  [30, command('turns', fc.integer({ min: 1, max: 3 }), (_world, count) => turns(count))],
  [20, command('idle', fc.constant(3), (world) => world.checkIdle())],
  [15, command('pass', fc.constantFrom(1, 20, 30, 50), (_world, ms) => pass(ms))],
  [
    20,
    command(
      'open',
      fc.integer({ min: 1, max: 9 }),
      (world, count) => world.open(count),
      (world) => world.sessions.wanted > 0,
    ),
  ],
  [
    3,
    command(
      'fail to open',
      fc.constant(0),
      (world) => world.failToOpen(),
      (world) => world.sessions.wanted > 0,
    ),
  ],
  [1, command('stop', fc.constant(0), (world) => world.stop())],
]

const settings = fc.record({
  size: fc.integer({ min: 1, max: 6 }),
  open: fc.constantFrom(0, 1, 9, 9),
})

test('no call is lost, none waits for nothing, and none has the output of another', async () => {
  console.log(`DIFFERENTIAL_SEED=${SEED}`)
  const runs = fc.commands(
    commands.flatMap(([times, command]) => Array(times).fill(command)),
    { maxCommands: 120, size: 'max' },
  )
  await fc.assert(
    fc.asyncProperty(settings, runs, async ({ size, open }, run) => {
      vi.clearAllTimers()
      world = new World(size, open)
      await fc.asyncModelRun(() => ({ model: world, real: world }), run)
      await world.finish(pass)
      expect(vi.getTimerCount(), 'timers of nothing that waits').toBe(world.pauses)
    }),
    { seed: SEED, numRuns: RUNS },
  )
})
