// Browsers start no workers for pages that are read from files. There the site's search, which is
// a worker, runs in a hidden frame, with what it uses of a worker's scope.
if (location.protocol === "file:") {
  const scope = () => {
    self.importScripts = (...urls) =>
      urls.reduce(
        (before, url) =>
          before.then(
            () =>
              new Promise((loaded, failed) => {
                const script = Object.assign(document.createElement("script"), { src: url });
                script.onload = loaded;
                script.onerror = failed;
                document.head.append(script);
              }),
          ),
        Promise.resolve(),
      );
    self.postMessage = (data) => self.tell(data);
  };

  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.tell = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.scope.eval(`(${scope})()`);
      this.ready = this.scope.importScripts(new URL(url, document.baseURI));
    }

    postMessage(data) {
      this.ready.then(() => this.scope.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
