/** The queue keeps its promises whatever calls come, and whatever becomes of sessions, deadlines and statements. */
import { syncBuiltinESMExports } from 'node:module'
import timers from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Use } from '../../../db/plan.ts'
import { drain, turns } from './sessions.ts'
import { type Outcome, type PLANS, World } from './world.ts'

const RUNS = 100
const SEED = Number(process.env.DIFFERENTIAL_SEED)

const pauseReally = timers.setTimeout
let world: World

beforeAll(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date'] })
  vi.spyOn(Math, 'random').mockReturnValue(0.5) // so that a seed repeats its runs
  timers.setTimeout = ((milliseconds: number) => world.pause(milliseconds)) as never
  syncBuiltinESMExports()
})

afterAll(() => {
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
const calls = fc.record({
  plans: fc.array(fc.tuple(planNames, fc.constantFrom('a', 'b', 'c', 'd')), {
    minLength: 1,
    maxLength: 8,
  }),
  haveOneDeadline: fc.boolean(),
})
const outcomes = fc.constantFrom<Outcome>(
  'success',
  'success',
  'success',
  'no effect',
  'unknown effect',
  'rejected row',
)

const commands = [
  command('call', calls, (world, { plans, haveOneDeadline }) => {
    const shared = haveOneDeadline ? world.newDeadline() : undefined
    for (const [plan, name] of plans) world.call(plan, name, shared)
  }),
  command('borrow', fc.constantFrom<Use>('read', 'write', 'readiness'), (world, use) =>
    world.borrow(use),
  ),
  command(
    'release',
    indexes,
    (world, index) => world.release(one(borrowed(world), index)),
    (world) => borrowed(world).length > 0,
  ),
  ...Array.from({ length: 4 }, () =>
    command(
      'end',
      fc.tuple(indexes, outcomes),
      (world, [index, outcome]) => world.end(one(moving(world), index), outcome),
      (world) => moving(world).length > 0,
    ),
  ),
  command(
    'freeze',
    indexes,
    (world, index) => void world.frozen.add(one(moving(world), index)),
    (world) => moving(world).length > 0,
  ),
  command(
    'give up',
    indexes,
    (world, index) => world.giveUp(one(unsettled(world), index)),
    (world) => unsettled(world).length > 0,
  ),
  command('turns', fc.integer({ min: 1, max: 3 }), (_world, count) => turns(count)),
  command('idle', fc.constant(3), (world) => world.checkIdle()),
  command('pass', fc.constantFrom(1, 20, 30, 50), (_world, milliseconds) => pass(milliseconds)),
  ...Array.from({ length: 2 }, () =>
    command(
      'open',
      fc.integer({ min: 1, max: 9 }),
      (world, count) => world.open(count),
      (world) => world.sessions.wanted > 0,
    ),
  ),
  command(
    'fail to open',
    fc.constant(0),
    (world) => world.failToOpen(),
    (world) => world.sessions.wanted > 0,
  ),
]
const rare = [
  command('stop', fc.constant(0), (world) => world.stop()),
  command('call often', fc.constantFrom(400, 700), (world, count) => {
    for (let made = 0; made < count; made++) world.call('crowd', 'a')
  }),
]

const settings = fc.record({
  size: fc.integer({ min: 1, max: 8 }),
  open: fc.constantFrom(0, 1, 9, 9),
})

test('no call is lost, none waits for nothing, and none has the output of another', async () => {
  console.log(`DIFFERENTIAL_SEED=${SEED}`)
  const runs = fc.commands(
    [...commands, ...commands, ...commands, ...commands, ...commands, ...rare],
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
