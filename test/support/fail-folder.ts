/**
 * Preloaded into a process of the service. The folder of the migrations cannot be read the first
 * time, as if the process had too many open files.
 */
import fs from 'node:fs/promises'

const { readdir } = fs
let hasFailed = false

fs.readdir = ((...parameters: Parameters<typeof readdir>) => {
  if (hasFailed || !/migrations\/?$/.test(String(parameters[0]))) return readdir(...parameters)
  hasFailed = true
  return Promise.reject(Object.assign(new Error('EMFILE: too many open files'), { code: 'EMFILE' }))
}) as typeof readdir // its overloads differ only in the types of their results
