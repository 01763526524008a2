/** The image, built and run by Docker. */
import { setTimeout as wait } from 'node:timers/promises'
import { expect } from 'vitest'
import { docker, inspect, logged, logs, start, withoutDocker } from './docker.ts'
import { trial } from './trial.ts'

/** Runs a trial of the image where there is a Docker engine. */
const imageTrial = (what: string, attempt: () => Promise<string>) =>
  trial(
    `The image: ${what}`,
    async () => {
      const result = await attempt()
      return { version: await docker('version', '--format', '{{.Server.Version}}'), result }
    },
    withoutDocker,
  )

imageTrial('stop', async () => {
  // Before Node handles a signal, and after.
  for (const milliseconds of [0, 300, 5_000]) {
    const name = await start()
    await wait(milliseconds)
    const begin = performance.now()
    await docker('stop', '--time', '30', name)
    const state = await inspect(name, '.State.ExitCode')
    expect(['0', '143'], `after ${milliseconds} ms`).toContain(state)
    expect(performance.now() - begin).toBeLessThan(10_000)
  }
  return 'at any moment of a start'
})

imageTrial('compiled code', async () => {
  const debug = ['--env', 'NODE_DEBUG_NATIVE=COMPILE_CACHE']
  const name = await start([...debug, '--read-only', '--tmpfs', '/app/data:uid=1000'])
  await logged(name, /Petstore is running/)
  const printed = await logs(name)
  expect(printed).toMatch(/V8 code cache for ESM file:\/\/\/app\/src\/main.ts was accepted/)
  expect(printed).not.toMatch(/V8 code cache for .* was rejected/)
  return 'a new container starts with it, read-only, too'
})
