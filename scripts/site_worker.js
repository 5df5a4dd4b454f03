// Browsers give pages that are opened from a folder no web workers, which the site's search needs. There, a hidden frame
// does what a worker would do.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.waiting = []
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.frame.onload = () => {
        const inside = this.frame.contentWindow
        inside.postMessage = data => {
          const event = new MessageEvent("message", {data})
          this.onmessage?.(event)
          this.dispatchEvent(event)
        }
        const script = inside.document.createElement("script")
        script.src = new URL(url, location).href
        script.onload = () => {
          this.loaded = inside
          for (const data of this.waiting) this.deliver(data)
        }
        inside.document.head.append(script)
      }
      const show = () => document.body.append(this.frame)
      document.body ? show() : addEventListener("DOMContentLoaded", show)
    }

    deliver(data) {
      this.loaded.dispatchEvent(new this.loaded.MessageEvent("message", {data}))
    }

    postMessage(data) {
      this.loaded ? this.deliver(data) : this.waiting.push(data)
    }

    terminate() {
      this.frame.remove()
    }
  }
}
