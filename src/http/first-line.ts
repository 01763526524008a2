/** The address that a connection asks for first, so that a refusal can have the form of its surface. */
import type { Socket } from 'node:net'

/** Bytes of a first line that are enough to tell the surfaces apart. */
const ENOUGH = 64

/**
 * Listens until the first line of a new connection says what is asked for, puts back what it has
 * heard, and gives the address; undefined when there is none within `patience` milliseconds.
 * Node's parser tells the address only of requests whose headers it has read to their end.
 */
export function readFirstTarget(
  socket: Socket,
  patience: number,
  give: (target: string | undefined, isLate: boolean) => void,
): void {
  let heard = Buffer.alloc(0)
  const listen = (chunk: Buffer) => {
    heard = Buffer.concat([heard, chunk])
    const isBegun = /^[A-Z]+( \S*)?$/.test(heard.toString('latin1', 0, ENOUGH))
    if (!isBegun || heard.length >= ENOUGH) finish(false)
  }
  const finish = (isLate: boolean) => {
    clearTimeout(timer)
    clearImmediate(lastCall)
    socket.off('data', listen).off('end', leave).off('error', leave).off('close', leave)
    if (!isLate) socket.unshift(heard)
    give(targetOf(heard), isLate)
  }
  // The client went before it said anything.
  const leave = () => {
    clearTimeout(timer)
    clearImmediate(lastCall)
    socket.destroy()
  }
  // What has come while the process was busy is looked at first.
  let lastCall: NodeJS.Immediate | undefined
  const timer = setTimeout(() => {
    lastCall = setImmediate(finish, true)
  }, patience).unref()
  socket.on('data', listen).on('end', leave).on('error', leave).on('close', leave)
}

/** The address in the first line of what was sent, as far as it is there. */
export const targetOf = (bytes: Buffer | undefined): string | undefined =>
  bytes?.toString('latin1', 0, ENOUGH).match(/^[A-Z]+ ((\/|https?:)\S*)/)?.[1]
